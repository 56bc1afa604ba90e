package access

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFile is the largest file in bytes, far more than certificates or tokens need.
const maxFile = 1 << 20

// FileError is an error of files that Config names. Its text has their names.
type FileError struct {
	Files []string
	Err   error
}

func (e *FileError) Error() string { return e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// source is files whose contents are used together, like a certificate and its key. The
// files are small, so refresh reads them and compares the contents. Modification times are
// too coarse to show that a file was written while it was read.
type source struct {
	files []string
	// use puts the contents into use. If it returns an error, the old contents stay in use.
	use func(texts [][]byte) error

	seen   [sha256.Size]byte // of texts in use
	failed string            // the error of the last Server.refresh, empty for none
}

// refresh reads the files, and uses their contents if those differ from the ones in use. changed
// reports whether it did. It returns an error at each call until the files are right.
func (s *source) refresh() (changed bool, err error) {
	texts := make([][]byte, len(s.files))
	sum := sha256.New()
	for i, file := range s.files {
		if texts[i], err = read(file, s.seen != [sha256.Size]byte{}); errors.Is(err, errOnce) {
			return false, nil
		} else if err != nil {
			return false, &FileError{[]string{file}, err}
		}
		fmt.Fprintf(sum, "%d ", len(texts[i]))
		sum.Write(texts[i])
	}
	now := [sha256.Size]byte(sum.Sum(nil))
	if now == s.seen {
		return false, nil
	}
	if err := s.use(texts); err != nil {
		if _, ok := errors.AsType[*FileError](err); !ok {
			err = &FileError{s.files, err}
		}
		return false, err
	}
	s.seen = now
	return true, nil
}

// errOnce means that a file, like a pipe, can be read only once.
var errOnce = errors.New("not a regular file")

// read returns the contents of a file. again means that the file has been read before.
func read(file string, again bool) ([]byte, error) {
	fi, err := os.Stat(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("file %s not found. Create it or correct the path", file)
	}
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("no permission to read %s. Check its owner and mode, and those of its directories", file)
	}
	if err != nil {
		return nil, err
	}
	if fi.IsDir() {
		return nil, fmt.Errorf("%s is a directory. Give a file", file)
	}
	if again && !fi.Mode().IsRegular() {
		return nil, errOnce
	}
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("no permission to read %s. Check its owner and mode", file)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("%s: the file is larger than %d bytes", file, maxFile)
	}
	if text, err = Text(text); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return text, nil
}

// Text returns what follows the byte order mark with which editors on Windows begin a text in UTF-8. UTF-16 is an
// error.
func Text(b []byte) ([]byte, error) {
	if bytes.HasPrefix(b, []byte("\xff\xfe")) || bytes.HasPrefix(b, []byte("\xfe\xff")) {
		return nil, errors.New("the text is in UTF-16. Save it as UTF-8 (in PowerShell: Out-File -Encoding ascii)")
	}
	return bytes.TrimPrefix(b, []byte("\ufeff")), nil
}

// isOpen reports whether others than the file's owner and group have access to a file. It
// returns false for pipes, whose permissions mean nothing.
func isOpen(file string) bool {
	fi, err := os.Stat(file)
	return err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o007 != 0
}
