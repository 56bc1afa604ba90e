package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/worker"
	"github.com/flaked/flaked/zkstore"
)

// foundLayout is the layout to decode by and where it was found. A wrong layout
// decodes to nonsense without an error, so every output names both.
type foundLayout struct {
	layout worker.Layout
	// from is --layout, FLAKED_LAYOUT, "settings file", "node ADDRESS, cluster
	// NAME", "ZooKeeper SERVERS, cluster NAME" or "assumed".
	from string
	// named means that --layout is on the command line.
	named bool
	// assumed is the reason why the layout had to be assumed, "" if it was found.
	assumed string
}

func (f foundLayout) String() string {
	if f.assumed != "" {
		return layoutName(f.layout) + ", assumed"
	}
	return layoutName(f.layout) + ", from " + f.from
}

// doubt returns the error that a command ends with for a layout that was assumed.
func (f foundLayout) doubt() error {
	if f.assumed == "" {
		return nil
	}
	return exitWith(exitDegraded, "the default layout is assumed: %s. Give --layout, --addr or --zk", f.assumed)
}

// decode returns the fields of an ID, and the doubt about its time.
func (f foundLayout) decode(text string, now time.Time) (decodedID, error) {
	id, err := decodeID(f.layout, text)
	if err != nil {
		return id, err
	}
	id.Layout, id.LayoutFrom = f.layout.String(), f.from
	id.Warning = doubtOf(time.UnixMilli(id.TimestampMs), now)
	return id, nil
}

// layoutHelp explains layoutSourceFlags in the help of commands that have them.
const layoutHelp = `The layout is that of --layout, of the node at --addr, or of the cluster that --zk and
--cluster name. Without these flags, it is the first of these that is found:
FLAKED_LAYOUT, the layout of the node that ` + "`flaked get`" + ` asks (FLAKED_ADDR, or
127.0.0.1:7609), that of the cluster at FLAKED_ZK. If none is found, the default
layout, leaf, is assumed.`

// layoutSourceFlags returns the flags that tell findLayout where to get the layout.
func layoutSourceFlags() []cli.Flag {
	flags := []cli.Flag{layoutFlag("see above"), addrFlag(), timeoutFlag(2 * time.Second)}
	return append(append(flags, accessFlags()...), zkFlags("")...)
}

// origin is where the value of a flag comes from.
type origin uint8

const (
	notGiven      origin = iota
	inSettings           // the environment or a file, which are for other commands too
	onCommandLine        // meant for this call
)

// originOf returns where a text flag's value comes from. A value that equals the
// environment's counts as the environment's: the library does not tell them apart.
func originOf(c *cli.Context, name string) origin {
	switch {
	case !c.IsSet(name):
		return notGiven
	case setByFile(c, name), os.Getenv(envName(name)) == c.String(name):
		return inSettings
	}
	return onCommandLine
}

// layoutSource is one place to get the layout from.
type layoutSource uint8

const (
	fromFlag layoutSource = iota
	fromNode
	fromZooKeeper
)

// layoutHints are where the values of --layout, --addr, --zk and --cluster come
// from.
type layoutHints struct{ layout, addr, zk, cluster origin }

// sources returns where to look for the layout, in order. If the result is binding,
// a layout that is not found there is an error. Otherwise nobody asked for these
// places in particular, and an assumption is better than nothing.
func (h layoutHints) sources() (order []layoutSource, binding bool, err error) {
	if h.layout == onCommandLine {
		order = append(order, fromFlag)
	}
	if h.addr == onCommandLine {
		order = append(order, fromNode)
	}
	if h.zk == onCommandLine || h.cluster == onCommandLine {
		order = append(order, fromZooKeeper)
	}
	switch {
	case len(order) > 1:
		return nil, false, usageError("--layout, --addr and --zk (with --cluster) each name a layout. Give one of them")
	case h.cluster == onCommandLine && h.zk == notGiven:
		return nil, false, usageError("--cluster needs --zk. Give --zk HOST:PORT, or --layout or --addr instead")
	case len(order) == 1:
		return order, true, nil
	case h.layout == inSettings:
		return []layoutSource{fromFlag}, true, nil
	case h.zk == inSettings:
		return []layoutSource{fromNode, fromZooKeeper}, false, nil
	}
	return []layoutSource{fromNode}, false, nil
}

// findLayout returns the layout to decode by, from the sources that layoutHelp lists.
func findLayout(c *cli.Context) (foundLayout, error) {
	order, binding, err := layoutHints{
		layout: originOf(c, "layout"), addr: originOf(c, "addr"), zk: originOf(c, "zk"), cluster: originOf(c, "cluster"),
	}.sources()
	if err != nil {
		return foundLayout{}, err
	}
	look := map[layoutSource]func(*cli.Context, bool) (foundLayout, error){
		fromFlag: flagLayout, fromNode: nodeLayout, fromZooKeeper: zooKeeperLayout,
	}
	var why []string
	for _, source := range order {
		found, err := look[source](c, binding)
		if err == nil || binding || c.Err() != nil {
			return found, err
		}
		var silent *silentError
		if errors.As(err, &silent) {
			err = silent // without the advice on --addr: nobody gave it
		}
		why = append(why, plain(err.Error()))
	}
	return foundLayout{layout: worker.Leaf(), from: "assumed", assumed: strings.Join(why, "; ")}, nil
}

func flagLayout(c *cli.Context, _ bool) (foundLayout, error) {
	found := foundLayout{from: "--layout", named: originOf(c, "layout") == onCommandLine}
	switch {
	case found.named:
	case setByFile(c, "layout"):
		found.from = "settings file"
	default:
		found.from = envName("layout")
	}
	var err error
	if found.layout, err = worker.ParseLayout(c.String("layout")); err != nil {
		return found, usageError("%s: %w", found.from, err)
	}
	return found, nil
}

// nodeLayout asks the node at --addr for its cluster's layout.
func nodeLayout(c *cli.Context, _ bool) (found foundLayout, err error) {
	nodes, err := newConversation(c)
	if err != nil {
		return found, err
	}
	var addr string
	var stats map[string]string
	for _, addr = range nodes.addrs {
		if stats, err = askStats(c.Context, nodes.access, addr, nodes.timeout); !triesNext(err) {
			break
		}
	}
	var reply *replyError
	switch {
	case errors.As(err, &reply):
		return found, exitWith(exitFailure, "%w%s", err, accessAdvice(reply))
	case err != nil:
		return found, err
	case stats["layout"] == "":
		return found, exitWith(exitFailure, "the node at %s does not know its cluster's layout yet: it has not reached ZooKeeper. Try again later", addr)
	}
	found.from = fmt.Sprintf("node %s, cluster %s", addr, printable(stats["cluster"]))
	if found.layout, err = worker.ParseLayout(stats["layout"]); err != nil {
		return found, exitWith(exitFailure, "%s answered %.60q for its layout. Check that it is a flaked node of this release", addr, stats["layout"])
	}
	return found, nil
}

// zooKeeperLayout reads the cluster's record. If the result is not binding, it waits
// no longer than it would for a node.
func zooKeeperLayout(c *cli.Context, binding bool) (found foundLayout, err error) {
	err = withStore(c, func(ctx context.Context, store zkstore.Store) error {
		if !binding {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.Duration("timeout"))
			defer cancel()
		}
		cl, err := coordinator.ReadCluster(ctx, store)
		if err != nil {
			return err
		}
		found.from = fmt.Sprintf("ZooKeeper %s, cluster %s", c.String("zk"), c.String("cluster"))
		found.layout, err = worker.ParseLayout(cl.Layout)
		return err
	})
	return found, err
}
