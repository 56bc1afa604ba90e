package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// servers are a MariaDB, a PostgreSQL and a Redis on sockets in a directory of their own.
type servers struct {
	t   testing.TB
	dir string
}

// newServers starts the servers. Without FLAKED_TEST_IMPORTS=require it skips the test.
func newServers(t testing.TB) *servers {
	t.Helper()
	if os.Getenv("FLAKED_TEST_IMPORTS") != "require" {
		t.Skip("FLAKED_TEST_IMPORTS is not require. `make imports` gets the servers and runs this")
	}
	dir, err := os.MkdirTemp("", "flaked-imports-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // PostgreSQL does not run as root
		t.Fatal(err)
	}
	s := &servers{t, dir}
	var starting sync.WaitGroup
	for _, start := range []func(){s.startMariaDB, s.startPostgres, s.startRedis} {
		starting.Go(start)
	}
	starting.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return s
}

func (s *servers) path(name string) string { return filepath.Join(s.dir, name) }

// run runs a command until it ends.
func (s *servers) run(name string, args ...string) bool {
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		s.t.Errorf("%s %q: %v. scripts/get-databases.sh gets the servers\n%s", name, args, err, out)
		return false
	}
	return true
}

// serve starts a server, which runs until the end of the test, and waits until the command says that it serves.
func (s *servers) serve(ready []string, name string, args ...string) {
	launch(s.t, name, nil, name, args...)
	if !within(patience, func() bool { return exec.Command(ready[0], ready[1:]...).Run() == nil }) {
		s.t.Errorf("%s does not serve", name)
	}
}

func (s *servers) startMariaDB() {
	data := s.path("mariadb")
	if !s.run("mariadb-install-db", "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db") {
		return
	}
	s.serve(append(s.mariadb(), "-e", "SELECT 1"), "mariadbd", "--no-defaults", "--datadir="+data, "--skip-networking",
		"--socket="+s.path("mariadb.sock"), "--pid-file="+s.path("mariadb.pid"), "--user=root", "--innodb-flush-log-at-trx-commit=0",
		"--auto-increment-increment=3", "--auto-increment-offset=2")
	s.run("mariadb", append(s.mariadb()[1:], "-e", `CREATE DATABASE shop; USE shop;
		CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, note VARCHAR(20));
		CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL, description VARCHAR(256));
		INSERT INTO leaf_alloc VALUES ('order', 1, 10, 'orders, all shops');
		CREATE TABLE tiny_id_info (id BIGINT AUTO_INCREMENT PRIMARY KEY, biz_type VARCHAR(63) UNIQUE, begin_id BIGINT, max_id BIGINT, step INT, delta INT, remainder INT, version BIGINT);
		INSERT INTO tiny_id_info (biz_type, begin_id, max_id, step, delta, remainder, version) VALUES ('order', 1, 1, 20, 2, 1, 1)`)...)
}

func (s *servers) mariadb() []string {
	return []string{"mariadb", "--no-defaults", "--batch", "--socket=" + s.path("mariadb.sock"), "--user=root"}
}

func (s *servers) startPostgres() {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		s.t.Errorf("no PostgreSQL in /usr/lib/postgresql: %v. scripts/get-databases.sh gets it", err)
		return
	}
	bin := found[len(found)-1]
	var as []string
	if os.Geteuid() == 0 {
		as = []string{"setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=KILL"}
	}
	initdb := append(as, bin+"/initdb", "-D", s.path("postgres"), "-A", "trust", "-U", "postgres", "--no-sync")
	if !s.run(initdb[0], initdb[1:]...) {
		return
	}
	server := append(as, bin+"/postgres", "-D", s.path("postgres"), "-c", "listen_addresses=", "-c", "unix_socket_directories="+s.dir, "-c", "fsync=off")
	s.serve(append(s.psql(), "-c", "SELECT 1"), server[0], server[1:]...)
	s.run("psql", append(s.psql()[1:], "-c", `CREATE SEQUENCE "order" INCREMENT 10 START 7`)...)
}

func (s *servers) psql() []string {
	return []string{"psql", "--no-psqlrc", "-At", "-v", "ON_ERROR_STOP=1", "-h", s.dir, "-U", "postgres"}
}

func (s *servers) startRedis() {
	s.serve(append(s.redis(), "PING"), "redis-server", "--port", "0", "--unixsocket", s.path("redis.sock"), "--dir", s.dir, "--save", "")
}

func (s *servers) redis() []string { return []string{"redis-cli", "-e", "-s", s.path("redis.sock")} }

// console is a client program of a server, which answers each line with one line.
type console struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Reader
}

func (s *servers) client(command []string) *console {
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { in.Close(); _ = cmd.Wait() })
	return &console{s.t, in, bufio.NewReader(out)}
}

// numbers sends a line and returns the numbers of the answer. It returns none after an error.
func (c *console) numbers(line string) (found []int64) {
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Error(err)
		return nil
	}
	answer, err := c.out.ReadString('\n')
	for _, field := range strings.Fields(answer) {
		var n int64
		if err == nil {
			n, err = strconv.ParseInt(field, 10, 64)
		}
		found = append(found, n)
	}
	if err != nil || len(found) == 0 {
		c.t.Errorf("%q answers %q: %v", line, answer, err)
		return nil
	}
	return found
}

func (s *servers) sql() *console {
	return s.client(append(s.mariadb(), "--skip-column-names", "--unbuffered", "shop"))
}

// change runs a statement in MariaDB.
func (s *servers) change(sql string) { s.run("mariadb", append(s.mariadb()[1:], "-e", sql, "shop")...) }

// query returns the shell command that runs a query in MariaDB.
func (s *servers) query(sql string) string {
	return strings.Join(s.mariadb(), " ") + ` -e "` + sql + `" shop`
}

func (s *servers) counters() []counter {
	return []counter{leafCounter(s), tinyIDCounter(s), mysqlCounter(s), postgresCounter(s), redisCounter(s)}
}

// leafCounter issues as SegmentIDGenImpl: a server takes [max_id - step, max_id) of the row that it has updated.
func leafCounter(s *servers) counter {
	const sql = "SELECT * FROM leaf_alloc"
	back := "UPDATE leaf_alloc SET max_id = 5000 WHERE biz_tag = 'order'"
	return counter{from: "leaf", increment: 1, back: back, do: s.change, query: sql, rows: s.query(sql), writer: func() func() []int64 {
		c := s.sql()
		return func() (block []int64) {
			row := c.numbers("START TRANSACTION; UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = 'order'; " +
				"SELECT max_id, step FROM leaf_alloc WHERE biz_tag = 'order'; COMMIT;")
			if len(row) == 2 {
				for v := row[0] - row[1]; v < row[0]; v++ {
					block = append(block, v)
				}
			}
			return block
		}
	}}
}

// tinyIDCounter issues as DbSegmentIdServiceImpl: a server reads the row, and takes (max_id, max_id + step] if
// the version is still the same. It issues the numbers with the row's remainder.
func tinyIDCounter(s *servers) counter {
	const sql = "SELECT * FROM tiny_id_info"
	back := "UPDATE tiny_id_info SET max_id = 5000, version = version + 1 WHERE biz_type = 'order'"
	return counter{from: "tinyid", increment: 2, back: back, do: s.change, query: sql, rows: s.query(sql), writer: func() func() []int64 {
		c := s.sql()
		return func() (block []int64) {
			row := c.numbers("SELECT id, max_id, step, delta, remainder, version FROM tiny_id_info WHERE biz_type = 'order';")
			if len(row) != 6 {
				return nil
			}
			last := row[1] + row[2]
			done := c.numbers(fmt.Sprintf("UPDATE tiny_id_info SET max_id = %d, version = version + 1 "+
				"WHERE id = %d AND max_id = %d AND version = %d AND biz_type = 'order'; SELECT ROW_COUNT();", last, row[0], row[1], row[5]))
			for v := row[1] + 1; len(done) == 1 && done[0] == 1 && v <= last; v++ {
				if v%row[3] == row[4] {
					block = append(block, v)
				}
			}
			return block
		}
	}}
}

func mysqlCounter(s *servers) counter {
	const sql = "SELECT 'order' AS name, (SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'orders') AS auto_increment, " +
		"(SELECT MAX(id) FROM orders) AS max_id, @@auto_increment_increment AS auto_increment_increment, @@auto_increment_offset AS auto_increment_offset"
	return counter{from: "mysql", increment: 3, back: "ALTER TABLE orders AUTO_INCREMENT = 5000", do: s.change, query: sql, rows: s.query(sql), writer: func() func() []int64 {
		c := s.sql()
		return func() []int64 { return c.numbers("INSERT INTO orders (note) VALUES ('x'); SELECT LAST_INSERT_ID();") }
	}}
}

func postgresCounter(s *servers) counter {
	const sql = `SELECT format('SELECT %L, last_value, is_called, %s FROM %I.%I', sequencename, increment_by, schemaname, sequencename) FROM pg_sequences \gexec`
	return counter{from: "postgres", increment: 10, back: "SELECT setval('order', 5000, false)", do: func(sql string) { s.run("psql", append(s.psql()[1:], "-c", sql)...) }, query: sql, rows: fmt.Sprintf(`echo "%s" | %s`, sql, strings.Join(s.psql(), " ")), writer: func() func() []int64 {
		c := s.client(s.psql())
		return func() []int64 { return c.numbers(`SELECT nextval('"order"');`) }
	}}
}

func redisCounter(s *servers) counter {
	cli := strings.Join(s.redis(), " ")
	return counter{from: "redis", increment: 1, back: "SET order 5000", do: func(line string) { s.run("redis-cli", append(s.redis()[1:], strings.Fields(line)...)...) }, query: `printf '%s\t%s\n' "$key" "$(redis-cli -e `, rows: `key=order; printf '%s\t%s\n' "$key" "$(` + cli + ` GET "$key")"`, writer: func() func() []int64 {
		c := s.client(s.redis())
		return func() []int64 { return c.numbers("INCR order") }
	}}
}
