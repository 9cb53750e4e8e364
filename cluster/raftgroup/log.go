package raftgroup

import (
	"errors"
	"io"
	"log"
	"log/slog"
	"slices"

	"github.com/hashicorp/go-hclog"

	"github.com/daybook-data/daybook/cluster/transport"
)

// raftLogger gives raft's messages to slog. Below Warn they are dropped: the normal course is silent. So is what raft says of
// each group, several times a second, for as long as a node cannot be reached, which the transport says once, and of each
// pipeline that ends as its group is at rest, and of copies that are about to be opened.
type raftLogger struct {
	to   *slog.Logger
	name string
	args []any
}

var _ hclog.Logger = (*raftLogger)(nil)

// Log implements hclog.Logger.
func (l *raftLogger) Log(level hclog.Level, msg string, args ...any) {
	switch level {
	case hclog.Warn:
		l.Warn(msg, args...)
	case hclog.Error:
		l.Error(msg, args...)
	}
}

// Trace implements hclog.Logger.
func (l *raftLogger) Trace(string, ...any) {}

// Debug implements hclog.Logger.
func (l *raftLogger) Debug(string, ...any) {}

// Info implements hclog.Logger.
func (l *raftLogger) Info(string, ...any) {}

// Warn implements hclog.Logger.
func (l *raftLogger) Warn(msg string, args ...any) {
	switch {
	case slices.ContainsFunc(args, ordinary):
	case course(msg):
		l.to.Debug("raft", l.attrs(msg, args)...)
	default:
		l.to.Warn("raft", l.attrs(msg, args)...)
	}
}

// course says whether raft warns of what belongs to the normal course, of each group: a new member gets what it lacks, a leader
// hands over, a member is down, or most are. It shows, once for the node, in what the transport logs, in the status and in /ready.
func course(msg string) bool {
	switch msg {
	case "appendEntries rejected, sending older logs", "failed to get previous log", "previous log term mis-match",
		"peer has newer term, stopping replication", "not part of stable configuration, aborting election",
		"failed to contact", "failed to contact quorum of nodes, stepping down", "new leader elected, stepping down",
		"heartbeat timeout reached, starting election", "Election timeout reached, restarting election",
		"rejecting pre-vote request since we have a leader", "rejecting vote request since we have a leader",
		"rejecting vote request since our last term is greater":
		return true
	}
	return false
}

// Error implements hclog.Logger. Raft calls errors what a group recovers from; what ends a group is told by its Err.
func (l *raftLogger) Error(msg string, args ...any) { l.Warn(msg, args...) }

// ordinary says whether a message's argument is an error that is nothing to be told of each group.
func ordinary(arg any) bool {
	err, ok := arg.(error)
	return ok && (errors.Is(err, transport.ErrUnreachable) || errors.Is(err, transport.ErrAtRest) || errors.Is(err, transport.ErrNotOpen))
}

func (l *raftLogger) attrs(msg string, args []any) []any {
	return append(append([]any{"message", msg}, l.args...), args...)
}

// IsTrace implements hclog.Logger.
func (l *raftLogger) IsTrace() bool { return false }

// IsDebug implements hclog.Logger.
func (l *raftLogger) IsDebug() bool { return false }

// IsInfo implements hclog.Logger.
func (l *raftLogger) IsInfo() bool { return false }

// IsWarn implements hclog.Logger.
func (l *raftLogger) IsWarn() bool { return true }

// IsError implements hclog.Logger.
func (l *raftLogger) IsError() bool { return true }

// ImpliedArgs implements hclog.Logger.
func (l *raftLogger) ImpliedArgs() []any { return l.args }

// With implements hclog.Logger.
func (l *raftLogger) With(args ...any) hclog.Logger {
	return &raftLogger{to: l.to, name: l.name, args: append(append([]any(nil), l.args...), args...)}
}

// Name implements hclog.Logger.
func (l *raftLogger) Name() string { return l.name }

// Named implements hclog.Logger.
func (l *raftLogger) Named(name string) hclog.Logger {
	return &raftLogger{to: l.to, name: name, args: l.args}
}

// ResetNamed implements hclog.Logger.
func (l *raftLogger) ResetNamed(name string) hclog.Logger { return l.Named(name) }

// SetLevel implements hclog.Logger; the level is fixed.
func (l *raftLogger) SetLevel(hclog.Level) {}

// GetLevel implements hclog.Logger.
func (l *raftLogger) GetLevel() hclog.Level { return hclog.Warn }

// StandardLogger implements hclog.Logger.
func (l *raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return slog.NewLogLogger(l.to.Handler(), slog.LevelWarn)
}

// StandardWriter implements hclog.Logger.
func (l *raftLogger) StandardWriter(o *hclog.StandardLoggerOptions) io.Writer {
	return l.StandardLogger(o).Writer()
}
