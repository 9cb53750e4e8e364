package redis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/pipeline"
)

// verdict is what an error of one command means for its record.
type verdict int

const (
	retry    verdict = iota // the server can't now; the same command may work later
	refuse                  // the server never takes this record
	stop                    // going on would be wrong
	noScript                // the server has forgotten our script
)

// judge sorts the error of a command. What is not known is tried again: that holds the
// cursor and is seen, and nothing is lost.
func judge(err error) verdict {
	switch word := firstWord(err); word {
	case "WRONGTYPE":
		return refuse
	case "MOVED", "ASK", "CROSSSLOT", "BADVERSION":
		return stop
	case "NOSCRIPT":
		return noScript
	}
	return retry
}

// firstWord is the code of an error that the server has sent, empty for any other error.
func firstWord(err error) string {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return ""
	}
	word, _, _ := strings.Cut(reply.Error(), " ")
	return word
}

// advice says what to do about errors that someone must see to.
func advice(err error) string {
	switch firstWord(err) {
	case "OOM":
		return "redis has no memory left: raise maxmemory or remove keys"
	case "READONLY":
		return "this server is a replica: give the address of the primary, if it doesn't take over by itself"
	case "LOADING":
		return "redis is loading its data"
	case "MASTERDOWN":
		return "this replica has lost its primary"
	case "MISCONF":
		return "redis can't save to its disk"
	case "NOAUTH", "WRONGPASS":
		return "check user and password"
	case "NOPERM":
		return "the user lacks a permission; it needs eval, evalsha, script load, the commands get set del type hset hget hgetall exists pexpire scan, and all keys of the template as well as daybook:*"
	}
	return ""
}

// transient wraps an error after which Flush is to be called again.
func (s *Sink) transient(doing string, err error) error {
	if a := advice(err); a != "" {
		return fmt.Errorf("%s on redis at %s: %w (%s)", doing, s.config.Addr, err, a)
	}
	return fmt.Errorf("%s on redis at %s: %w", doing, s.config.Addr, err)
}

// failure wraps an error of a command that does not concern a record.
func (s *Sink) failure(doing string, err error) error {
	if errors.As(err, new(*pipeline.StopError)) {
		return err
	}
	if judge(err) == stop {
		return s.stopped(doing, err)
	}
	return s.transient(doing, err)
}

// stopped returns the StopError for an error that judge calls stop.
func (s *Sink) stopped(doing string, err error) error {
	if firstWord(err) == "BADVERSION" {
		return &pipeline.StopError{
			Code: "version-unreadable", Where: doing, Err: err,
			Fix: "something else writes keys that begin with " + reserved + ": remove the key that is named, or choose another db",
		}
	}
	return clusterError(s.config.Addr, err)
}

func clusterError(addr string, err error) error {
	return &pipeline.StopError{
		Code: "redis-cluster", Where: addr, Err: err,
		Fix: "Redis Cluster is not supported yet: give the address of a server that holds all keys",
	}
}
