// Package vectors tests flaked's layouts against IDs of other generators. vectors.jsonl holds IDs
// that bwmarrin/snowflake, sony/sonyflake and its v2 have made, with the fields that these
// libraries decode them to. Here they decode to the same fields, and encode to the same IDs.
package vectors
