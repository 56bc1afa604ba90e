package lineproto

// engines are those there are on this system.
var engines = []Engine{EventLoops, Goroutines}
