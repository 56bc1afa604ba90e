// Package monitoring checks deploy/prometheus and deploy/grafana by promtool, and against
// the metrics that the real binary exports.
package monitoring
