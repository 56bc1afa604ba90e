package main

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"

	"github.com/flaked/flaked/coordinator"
	"github.com/flaked/flaked/ids"
	"github.com/flaked/flaked/internal/core/node"
	"github.com/flaked/flaked/internal/core/replies"
	"github.com/flaked/flaked/internal/core/seq/operator"
	"github.com/flaked/flaked/internal/core/seq/record"
	"github.com/flaked/flaked/internal/core/store"
	"github.com/flaked/flaked/internal/dialog"
	"github.com/flaked/flaked/internal/ops/health"
	"github.com/flaked/flaked/internal/ops/poll"
	"github.com/flaked/flaked/internal/ops/words"
)

// Of the packages below, only health, doctor, poll and admin name flags. This file has the advice for errors of the
// others. An error that a command makes itself has its advice in its text.
//
//   - withAdvice is for the error that ends any command. advise and sentinelAdvice find its advice.
//   - replyAdvice is for the error reply of a node, and nextAdvice for one to NEXT. Both ask codeAdvice, which goes by
//     the code alone.
//   - silentAdvice is for a node that does not answer, and accessAdvice for one that does not let the command in.
//   - causeAdvice and adviceOf take the words of health's table of causes.

// withAdvice returns an error's text with the names of flags, and with advice that names flags and commands.
func withAdvice(err error) string {
	err = node.Named(err, flagName)
	advice, about := advise(err)
	return strings.Replace(err.Error(), about.Error(), words.PlainError(about.Error())+advice, 1)
}

// advise returns advice, and the error that it is about: err itself, or one that err wraps. The text of that error is
// in the text of err, and the advice belongs behind it.
func advise(err error) (advice string, about error) {
	if e, ok := errors.AsType[*node.StateOfOtherClusterError](err); ok {
		return adviceOf(health.AdviceOtherCluster), e
	}
	if e, ok := errors.AsType[*coordinator.OtherClusterError](err); ok {
		return ". Correct --zk, if it is another ZooKeeper. Otherwise the cluster was created anew: read " +
			"docs/troubleshooting.md before you empty --state-dir", e
	}
	if e, ok := errors.AsType[*coordinator.FencedError](err); ok && e.Cloned {
		return ". Its next start is a new node. IDs that both have made since then can be equal: see limit 3 in " +
			"docs/safety.md", e
	}
	if e, ok := errors.AsType[*node.OtherZooKeeperError](err); ok {
		return ". Point --zk at the first one. If that one is gone for good and this one replaces it, start once " +
			"with --zk-replaced", e
	}
	if e, ok := errors.AsType[*node.LostClusterError](err); ok {
		return ". Correct --zk and --cluster. If they are right, ZooKeeper has lost its data: see " +
			"docs/troubleshooting.md, and if no other node runs, start this one with --bootstrap, which puts the " +
			"cluster back", e
	}
	if e, ok := errors.AsType[*coordinator.FrozenError](err); ok {
		return frozenAdvice(e.By), e
	}
	if e, ok := errors.AsType[*coordinator.StillFrozenError](err); ok {
		return frozenAdvice(e.By), e
	}
	if e, ok := errors.AsType[*poll.SilentError](err); ok {
		return silentAdvice(e.Err), e
	}
	if _, ok := errors.AsType[*codedError](err); ok {
		return "", err // a command has said what to do
	}
	return sentinelAdvice(err), err
}

// sentinelAdvice returns the advice for an error without a type of its own, or "".
func sentinelAdvice(err error) string {
	return cmp.Or(sequenceAdvice(err), firstAdvice(err, []advised{
		{store.ErrUnreachable, adviceOf(health.AdviceZooKeeperDown)},
		{coordinator.ErrDamaged, adviceOf(health.AdviceClusterDamaged)},
		{coordinator.ErrNoCluster, adviceOf(health.AdviceNoCluster)},
		{store.ErrDenied, adviceOf(health.AdviceZooKeeperDenied)},
		{store.ErrQuota, adviceOf(health.AdviceQuota)},
		{store.ErrLocalSession, adviceOf(health.AdviceLocalSessions)},
		{poll.ErrTwoClusters, ". Give --addr of one of them, or name it with --cluster"},
		{operator.ErrNoState, ". Start a node with `flaked serve`, and try again when it is ready"},
	}))
}

// sequenceAdvice is sentinelAdvice for the errors about one sequence. They do not name it.
func sequenceAdvice(err error) string {
	return firstAdvice(err, []advised{
		{operator.ErrExists, ". `flaked seq show` prints it, and `flaked seq set` changes it"},
		{operator.ErrNotFound, ". `flaked seq list` prints the names"},
		{operator.ErrStartNeeded, ". Give it with --start. If you know that the name is new, give --start 1"},
		{operator.ErrTooEarly, ". `flaked seq show` prints when it may be purged"},
	})
}

// advised is an error, and the advice for it.
type advised struct {
	err    error
	advice string
}

// firstAdvice returns the advice of the first row that has an error which err wraps, or "".
func firstAdvice(err error, rows []advised) string {
	for _, row := range rows {
		if errors.Is(err, row.err) {
			return row.advice
		}
	}
	return ""
}

// frozenAdvice returns the advice for a freeze of registration. by is the operator who froze it, "" for a loss of data.
func frozenAdvice(by string) string {
	if by != "" {
		return adviceOf(health.AdviceFrozenByOperator)
	}
	return adviceOf(health.AdviceRegistrationFrozen)
}

// adviceOf returns advice of package health as the end of a sentence, which may go on.
func adviceOf(advice string) string { return ". " + strings.TrimSuffix(advice, ".") }

// causeAdvice returns what the cause in a refusal means and what to do, as text to append to the reply, with its
// punctuation. It returns "" for a cause that the table does not have.
func causeAdvice(reply *ids.ReplyError) string {
	if !health.Known(reply.Reason()) {
		return ""
	}
	p := health.ProblemOf(reply.Reason())
	return ". " + p.Text + adviceOf(p.Advice)
}

// codeAdvice returns what to do about the code of a reply, as text to append to the reply, with its punctuation. It
// returns "" for a code that needs no explanation.
func codeAdvice(reply *ids.ReplyError) string {
	if replies.ClassOf(reply.Code).Passes {
		if strings.Contains(reply.Text, "Retry") { // the node says what to do
			return ""
		}
		return ". Ask another node, or try again in a moment"
	}
	switch reply.Code {
	case ids.WRONGNODE:
		return ": --addr, or the name of the cluster: --cluster"
	case ids.EXHAUSTED:
		return ". Create a cluster with another layout"
	case ids.NOPERM:
		return ". Give another token with --token-file FILE or " + tokenEnv + ", or add the sequence to next= behind " +
			"this token in the nodes' token file"
	case ids.NOAUTH, ids.WRONGPASS:
		return ". Give a token that the node knows, with --token-file FILE or " + tokenEnv
	}
	return ""
}

// replyAdvice returns what an error reply means and what to do, as codeAdvice does.
func replyAdvice(reply *ids.ReplyError) string {
	return cmp.Or(codeAdvice(reply), accessAdvice(reply))
}

// nextAdvice is replyAdvice for a reply to NEXT. It returns "" for a reply that says itself what to do.
func nextAdvice(reply *ids.ReplyError) string {
	reason := record.Reason(reply.Reason())
	switch {
	case reply.Text == replies.ErrNoSequences.Text:
		return ". Ask a node that does"
	case reason == record.NoSequence:
		return ". `flaked seq list` prints the sequences, and `flaked seq create` creates one"
	case reason == record.Frozen && strings.Contains(reply.Text, "An operator must"):
		return ". `flaked seq show NAME`, of the sequence or its template, prints the command that does it"
	case reason == record.CeilingReached:
		return ": `flaked seq set --ceiling`" // the reply ends with: or raise the ceiling, up to the hard one
	case reason == record.Exhausted:
		return ": `flaked seq set --max`" // the reply ends with: Raise it
	}
	return replyAdvice(reply)
}

// silentAdvice returns what to do about err, for which a node has not answered, as text to append to that of err.
func silentAdvice(err error) string {
	access, kind := accessAdvice(err), dialog.KindOf(err)
	switch {
	case access != "":
		return access
	case kind == dialog.TimedOut:
		return ". Check that it is a flaked node, or wait longer with --timeout"
	case kind == dialog.ConnectionRefused, kind == dialog.SocketNotFound:
		return ". Start a node with `flaked serve`, or give another with --addr (FLAKED_ADDR)"
	case errors.Is(err, dialog.ErrLong):
		return ". Check that it is a flaked node"
	case errors.Is(err, poll.ErrHTTP):
		return ". Give the node's --listen address, whose port is " + dialog.DefaultPort + " by default"
	case kind == dialog.ConnectionClosed:
		return ". Check that it is a flaked node, and that it is not stopping"
	}
	return ". Check --addr (FLAKED_ADDR)"
}

// accessAdvice returns what to do about a failure to secure a connection, or about a node that refuses clients without
// a token or without TLS, as text to append to that of err. It returns "" for any other error.
func accessAdvice(err error) string {
	if reply, refused := errors.AsType[*ids.ReplyError](err); refused {
		switch {
		case reply.Code == ids.NOAUTH, reply.Code == ids.WRONGPASS:
			return codeAdvice(reply)
		case reply.Text == replies.ErrNeedsTLS.Text:
			return ". Give --tls, and --tls-ca FILE if its authority is your own"
		}
		return ""
	}
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	_, unknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, misnamed := errors.AsType[x509.HostnameError](err)
	_, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case plain:
		return ". That address does not use TLS. Leave out --tls and the --tls-... flags"
	case unknown:
		return ". Give the authority of its certificate with --tls-ca FILE"
	case misnamed:
		return ". Give the certificate's name with --tls-server-name NAME"
	case invalid:
		return ". The node needs another certificate, or this machine's clock is wrong"
	case strings.Contains(err.Error(), "remote error: tls: "):
		return ". The node requires a client certificate. Give one that it trusts with --tls-cert and --tls-key"
	}
	return ""
}
