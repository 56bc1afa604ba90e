// get-cluster.sh builds the programs of this module. Those of Kubernetes have the versions of internal/check/kubernetes.
module github.com/flaked/flaked/internal/check/cluster/programs

go 1.26.0

require github.com/coredns/coredns v1.15.0
