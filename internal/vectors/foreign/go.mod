module github.com/flaked/flaked/internal/vectors/foreign

go 1.26.0

require (
	github.com/bwmarrin/snowflake v0.3.0
	github.com/sony/sonyflake v1.3.0
	github.com/sony/sonyflake/v2 v2.2.0
)
