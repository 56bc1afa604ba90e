package store

import (
	"sync"
	"testing"
)

// TestCloseWhileAServerIsSilent closes many clients while each of them waits for a server's
// greeting. The race detector decides the result: while Run waits on its WaitGroup, no
// attempt may make the first Add.
func TestCloseWhileAServerIsSilent(t *testing.T) {
	t.Parallel()
	var all sync.WaitGroup
	for range 300 {
		greeted := make(chan struct{}, 1)
		addr := fakeServer(t, func(c conn) {
			_ = readFrame(c)
			select {
			case greeted <- struct{}{}:
			default: // the client has connected again, because this machine is slow
			}
			swallow(c)
		})
		all.Go(func() {
			z, err := NewZK(ZKConfig{Connect: addr, Cluster: "test"})
			if err != nil {
				t.Error(err)
				return
			}
			ended := make(chan error, 1)
			go func() { ended <- z.Run(t.Context()) }()
			<-greeted
			if err := z.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
