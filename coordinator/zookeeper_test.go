package coordinator

import (
	"testing"

	"github.com/flaked/flaked/internal/testkit/zktest"
)

func TestMain(m *testing.M) { zktest.Main(m) }
