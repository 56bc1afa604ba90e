package lineproto

// engines are the engines that this system has.
var engines = []Engine{EventLoops, Goroutines}
