package cluster

import (
	"io"
	"log"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/storage"
)

// maxAppendEntries bounds the entries raft stores, sends and applies at a time. Proposals in flight must not be more
// (raft's pipeline sends one request for each wake-up).
const maxAppendEntries = 64

// baseConfig is what groups of both kinds have in common.
func baseConfig(o GroupOptions) *raft.Config {
	c := raft.DefaultConfig()
	c.LocalID = raft.ServerID(o.ID)
	c.HeartbeatTimeout = o.Timeout
	c.ElectionTimeout = o.Timeout
	c.LeaderLeaseTimeout = o.Timeout / 2
	c.CommitTimeout = min(100*time.Millisecond, o.Timeout/4)
	c.MaxAppendEntries = maxAppendEntries
	c.BatchApplyCh = true
	c.NoLegacyTelemetry = true
	c.Logger = &raftLogger{to: o.Logger}
	return c
}

// journalConfig is raft's configuration over a log that is the data: nothing but retention may ever shorten it, so
// automatic snapshots are off twice over.
func journalConfig(o GroupOptions) *raft.Config {
	c := baseConfig(o)
	c.SnapshotThreshold = math.MaxUint64
	c.TrailingLogs = math.MaxUint64
	c.SnapshotInterval = 10000 * time.Hour
	c.NoSnapshotRestoreOnStart = true
	return c
}

// store is a group's journal as raft sees it. Raft panics, and with it the process, when a vote cannot be stored or an
// entry not be read. The journal has then failed and the group is being shut down, so the goroutine that asked ends
// instead, before it can act on the error: the other groups of the process go on.
type store struct {
	*storage.Journal
	started atomic.Bool // raft runs, so calls come from its goroutines

	mu  sync.Mutex
	err error // the first error; guarded by mu
}

var (
	_ raft.LogStore          = (*store)(nil)
	_ raft.StableStore       = (*store)(nil)
	_ raft.MonotonicLogStore = (*store)(nil)
)

func (s *store) firstErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stopOn ends raft's goroutine if err is one that raft would panic on.
func (s *store) stopOn(err error) error {
	if err == nil {
		return nil
	}
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	if s.started.Load() {
		s.Journal.Fail(err)
		runtime.Goexit() // raft starts its goroutines so that deferred calls tell it of the end
	}
	return err
}

// GetLog implements raft.LogStore.
func (s *store) GetLog(index uint64, l *raft.Log) error {
	err := s.Journal.GetLog(index, l)
	if err == raft.ErrLogNotFound {
		return err
	}
	return s.stopOn(err)
}

// Set implements raft.StableStore.
func (s *store) Set(key, value []byte) error { return s.stopOn(s.Journal.Set(key, value)) }

// SetUint64 implements raft.StableStore.
func (s *store) SetUint64(key []byte, value uint64) error {
	return s.stopOn(s.Journal.SetUint64(key, value))
}

// raftLogger gives raft's messages to slog. Below Warn they are dropped: the normal course is silent.
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
func (l *raftLogger) Warn(msg string, args ...any) { l.to.Warn("raft", l.attrs(msg, args)...) }

// Error implements hclog.Logger. Raft calls errors what a group recovers from; what ends a group is told by its Err.
func (l *raftLogger) Error(msg string, args ...any) { l.to.Warn("raft", l.attrs(msg, args)...) }

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
