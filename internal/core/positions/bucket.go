package positions

import "hash/fnv"

// Buckets is the number of directories that sequences are spread over in ZooKeeper.
const Buckets = 1024

// Bucket returns the number of the directory of a sequence, from 0 to Buckets-1.
func Bucket(name string) int {
	h := fnv.New32a()
	h.Write([]byte(name)) // never fails
	return int(h.Sum32() % Buckets)
}
