module github.com/flaked/flaked/bench/generators

go 1.26.0

replace github.com/flaked/flaked => ../..

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/flaked/flaked v0.0.0
	github.com/sony/sonyflake/v2 v2.2.0
)

require (
	github.com/cenkalti/backoff/v5 v5.0.3 // indirect
	github.com/dchest/siphash v1.2.3 // indirect
	github.com/fatih/color v1.13.0 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/go-hclog v1.6.3 // indirect
	github.com/mattn/go-colorable v0.1.12 // indirect
	github.com/mattn/go-isatty v0.0.24 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
)
