package web

import (
	"net/http"
	"strings"
)

// route is a path that is served.
type route struct {
	// path is matched exactly. A path that ends with a name in braces, like
	// "/v1/decode/{id}", matches every path with that prefix and at least one character
	// more. r.PathValue(name) then returns the rest.
	path, about string
	// open means that everybody may use the route: admit is not called.
	open bool
	// free means that a request takes no place: it is answered at once, or its handler
	// has places of its own.
	free bool
	// waits means that a request mostly waits, for example for ZooKeeper. It then takes
	// one of the places for such requests, so that the others are left for fast ones.
	waits bool
	// linked means that a browser may open the route from a link on another site's page.
	linked bool
	// methods are the methods that serve answers. nil means GET and HEAD.
	methods []string
	serve   http.HandlerFunc
}

// routes returns all routes. A request is served by the first one that matches it.
func (s *Server) routes() []route {
	post := []string{http.MethodGet, http.MethodPost}
	all := []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} // as in Leaf
	return []route{
		{path: "/livez", about: "liveness probe: 200 while the process works", open: true, free: true, serve: s.livez},
		{path: "/readyz", about: "readiness probe: 200 while a GET is answered with an ID, else 503 and the reason. " +
			"?verbose lists all checks", open: true, free: true, serve: s.readyz},
		{path: "/metrics", about: "metrics for Prometheus", open: true, serve: s.metricsHandler()},
		{path: "/v1/status", about: "state of this node, in JSON", serve: s.status},
		{path: "/v1/workers", about: "the cluster's workers, in JSON", waits: true, serve: s.workers},
		// HEAD is not answered: it would use up IDs and show none.
		{path: "/v1/ids", about: "an ID, or 10 with ?n=10, as strings in JSON", methods: post, serve: s.ids},
		{path: "/v1/decode/{id}", about: "decode an ID, in JSON", serve: s.decode},
		{path: "/v1/sequences", about: "the named sequences that this node knows, in JSON. ?prefix=order for some",
			serve: s.listSequences},
		{path: "/v1/sequences/{name}", about: "a named sequence. POST /v1/sequences/NAME/next?n=10 takes values, " +
			"POST /v1/sequences/NAME/range?n=1000 consecutive ones", waits: true,
			methods: []string{http.MethodGet, http.MethodHead, http.MethodPost}, serve: s.sequence},
		{path: "/api/segment/get/{key}", about: "a value of the sequence KEY, as Leaf's server answers",
			waits: true, methods: all, serve: s.leafSegment},
		{path: "/cache", about: "the named sequences that this node knows, with the names of Leaf's page",
			methods: all, serve: s.leafCaches},
		{path: "/tinyid/id/nextId", about: "values of the sequence ?bizType=NAME&token=TOKEN&batchSize=10, as " +
			"tinyid's server answers", open: true, waits: true, methods: post, serve: s.tinyid(false, s.tinyidNext)},
		{path: "/tinyid/id/nextIdSimple", about: "the same, in plain text", open: true, waits: true, methods: post,
			serve: s.tinyid(true, s.tinyidNext)},
		{path: "/tinyid/id/nextSegmentId", about: "a block of the sequence for tinyid's client", open: true,
			waits: true, methods: post, serve: s.tinyid(false, s.tinyidBlock)},
		{path: "/tinyid/id/nextSegmentIdSimple", about: "the same, in plain text", open: true, waits: true,
			methods: post, serve: s.tinyid(true, s.tinyidBlock)},
		{path: "/api/snowflake/get/{key}", about: "an ID, for any key, as Leaf's server answers", methods: all,
			serve: s.leafGet},
		{path: "/decodeSnowflakeId", about: "decode ?snowflakeId=ID, as Leaf's server does", methods: all,
			serve: s.leafDecode},
		{path: "/", about: "status page: this node, the cluster, the clocks", linked: true, serve: s.page},
		{path: "/page.css", about: "style of the page", open: true, serve: pageFile("page.css", "text/css")},
		{path: "/page.js", about: "script of the page", open: true, serve: pageFile("page.js", "text/javascript")},
		{path: "/page.svg", about: "icon of the page", open: true, serve: pageFile("page.svg", "image/svg+xml")},
	}
}

// matches reports whether a request is for this route. If so, it sets the path value.
func (rt route) matches(r *http.Request) bool {
	prefix, name, ok := strings.Cut(rt.path, "{")
	if !ok {
		return r.URL.Path == rt.path
	}
	rest, ok := strings.CutPrefix(r.URL.Path, prefix)
	if !ok || rest == "" {
		return false
	}
	r.SetPathValue(strings.TrimSuffix(name, "}"), rest)
	return true
}
