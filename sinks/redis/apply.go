package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/pipeline"
)

// apply sends changes in one pipeline and judges each reply. It returns those that are
// to be sent again, in order, with the reason; versions make their order safe.
//
// Guarantee 11.
func (s *Sink) apply(ctx context.Context, changes []change) (left []change, err error) {
	left, err = s.send(ctx, changes)
	if len(left) > 0 && judge(err) == noScript {
		if err := s.scripts.apply.Load(ctx, s.client).Err(); err != nil {
			return left, s.failure("loading the script", err)
		}
		left, err = s.send(ctx, left)
	}
	if err == nil || errors.As(err, new(*pipeline.StopError)) {
		return left, err
	}
	return left, s.transient("writing", err)
}

// send is one round of apply. Its error is the first reason to send again, or a StopError.
func (s *Sink) send(ctx context.Context, changes []change) (left []change, first error) {
	pipe := s.client.Pipeline()
	sent := make([]change, 0, len(changes))
	replies := make([]*redis.Cmd, 0, len(changes))
	for _, c := range changes {
		if c.Version < s.target.truncated[c.owner()] {
			s.superseded.Add(1)
			continue
		}
		args, err := s.arguments(&c)
		if err != nil {
			s.reject(c.item, err.Error())
			continue
		}
		sent = append(sent, c)
		replies = append(replies, pipe.EvalSha(ctx, s.scripts.apply.Hash(), []string{c.key, versionKey(c.key)}, args...))
	}
	if len(sent) == 0 {
		return nil, nil
	}
	_, execErr := pipe.Exec(ctx)
	for i, reply := range replies {
		err := reply.Err()
		if err == nil && reply.Val() == nil {
			err = errors.Join(errors.New("the server has not answered"), execErr)
		}
		if err == nil {
			err = s.settle(ctx, &sent[i], reply.Val())
		}
		if err == nil {
			continue
		}
		switch judge(err) {
		case refuse:
			s.reject(sent[i].item, fmt.Sprintf("redis, key %q: %v", sent[i].key, err))
			continue
		case stop:
			err = s.stopped(fmt.Sprintf("key %q", sent[i].key), err)
		}
		left = append(left, sent[i])
		if first == nil {
			first = err
		}
	}
	return left, first
}

// arguments returns what apply.lua wants for a change.
func (s *Sink) arguments(c *change) ([]any, error) {
	rowLife, versionLife := s.config.TTL.Milliseconds(), int64(0)
	if rowLife > 0 || c.kind == remove {
		versionLife = rowLife + s.config.TombstoneTTL.Milliseconds()
	}
	args := make([]any, 0, 32)
	args = append(args, hexVersion(c.Version), s.target.owned(c.item), string(c.kind), s.config.Type, rowLife, versionLife)
	switch c.kind {
	case putString:
		args = append(args, c.After.JSON())
	case putHash:
		return appendHash(args, &c.After, s.config.Columns)
	}
	return args, nil
}

// settle takes the reply of a change that the server has executed: 1, or the newer
// version that it has found in place.
func (s *Sink) settle(ctx context.Context, c *change, reply any) error {
	held, isText := reply.(string)
	if !isText {
		s.applied.Add(1)
		return nil
	}
	version, err := parseVersion(held)
	if err != nil {
		return err
	}
	s.superseded.Add(1)
	has, upTo, err := s.issued.Has(ctx, version)
	if has || err != nil {
		return err
	}
	return &pipeline.StopError{
		Code: "version-from-elsewhere", Where: fmt.Sprintf("redis key %q", c.key),
		Err: fmt.Errorf("it holds version %s, above the %s that its streams have reached: something else writes it", held, hexVersion(upTo)),
		Fix: "give each pipeline keys of its own; then delete what the other one wrote and replay",
	}
}
