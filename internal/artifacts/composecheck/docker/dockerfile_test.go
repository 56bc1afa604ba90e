package docker

import (
	"os"
	"strings"
	"testing"
)

// shipped returns the text of a file of flaked's directory.
func shipped(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(repository + "/" + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDockerfilePassesAndMistakesAreFound(t *testing.T) {
	text := shipped(t, "Dockerfile")
	if err := checkDockerfile([]byte(text)); err != nil {
		t.Error(err)
	}
	// Each row makes one mistake in the real file.
	mistakes := []struct{ name, old, new, want string }{
		{"an instruction misspelt", "\nUSER ", "\nUSERS ", "unknown instruction"},
		{"a flag misspelt", "--chown=", "--chwon=", "unknown flag"},
		{"a stage misspelt", "--from=build", "--from=built", "no such stage"},
		{"root", "USER 65532:65532", "USER 0:0", "other than root"},
		{"a user by name", "USER 65532:65532", "USER flaked", "in numbers"},
		{"another owner", "--chown=65532:65532", "--chown=1000:1000", "could not be written"},
		{"another base", "FROM scratch", "FROM debian:12", "not with scratch"},
		{"a shell", `CMD ["serve"]`, "CMD serve", "no shell"},
		{"a shell for the check", `CMD ["/usr/local/bin/flaked", "healthcheck"]`, "CMD flaked healthcheck", "no shell"},
		{"no check", "HEALTHCHECK ", "# ", "HEALTHCHECK [], want"},
		{"with libc", "CGO_ENABLED=0", "CGO_ENABLED=1", "builds a static"},
		{"the program elsewhere", "-o /image/usr/local/bin/flaked", "-o /image/flaked", "builds a static"},
	}
	for _, m := range mistakes {
		broken := strings.Replace(text, m.old, m.new, 1)
		if broken == text {
			t.Fatalf("%s: the file holds no %q", m.name, m.old)
		}
		if err := checkDockerfile([]byte(broken)); err == nil || !strings.Contains(err.Error(), m.want) {
			t.Errorf("%s: found %v, want %q", m.name, err, m.want)
		}
	}
}
