// Package worker defines the IDs and makes them: the layout of an ID's bits, the text forms
// of an ID, and the generator. It does no I/O and knows nothing of ZooKeeper.
//
// ID, Layout, Run, Pause and the types in their fields and methods are part of the API of flaked, and so are Leaf,
// ParseID, ParseLayout and ErrLayout. Other exported names may change in any release.
package worker
