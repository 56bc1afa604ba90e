package credentials

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxFile is far more than certificates or tokens take.
const maxFile = 1 << 20

// source is something that is made of the contents of files. To see whether
// they changed they are read: times of files are too coarse to tell of a file
// that was written while it was read, and these are small.
type source struct {
	files []string
	// use makes it, or returns an error and leaves what there was.
	use func(texts [][]byte) error

	seen   [sha256.Size]byte // of what is in use
	failed string            // the last error, if there was one since
}

// refresh reads the files and uses them if they are not those that are in use.
// An error is returned until it is mended: isNews tells whether it is another
// than the last time.
func (s *source) refresh() (changed, isNews bool, err error) {
	changed, err = s.tryRefresh()
	if err == nil {
		isNews = s.failed != ""
		s.failed = ""
		return changed, isNews, nil
	}
	isNews = s.failed != err.Error()
	s.failed = err.Error()
	return false, isNews, err
}

func (s *source) tryRefresh() (changed bool, err error) {
	texts := make([][]byte, len(s.files))
	sum := sha256.New()
	for i, file := range s.files {
		if texts[i], err = read(file, s.seen != [sha256.Size]byte{}); errors.Is(err, errOnce) {
			return false, nil
		} else if err != nil {
			return false, err
		}
		fmt.Fprintf(sum, "%d ", len(texts[i]))
		sum.Write(texts[i])
	}
	now := [sha256.Size]byte(sum.Sum(nil))
	if now == s.seen {
		return false, nil
	}
	if err := s.use(texts); err != nil {
		return false, err
	}
	s.seen = now
	return true, nil
}

// errOnce is of a pipe, whose content is there once only.
var errOnce = errors.New("no file to read again")

func read(file string, again bool) ([]byte, error) {
	fi, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if again && !fi.Mode().IsRegular() {
		return nil, errOnce
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("%s: more than %d bytes", file, maxFile)
	}
	return text, err
}

// isOpen tells whether everybody on the machine may read a file. A pipe's
// bits say nothing.
func isOpen(file string) bool {
	fi, err := os.Stat(file)
	return err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o007 != 0
}
