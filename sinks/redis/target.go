package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/daybook-data/daybook/pipeline"
)

// Fields of the target's hash. The numbers of done: are the offsets that were durable
// here with the last Flush; they are kept for each sink that writes to the target.
const (
	fieldPipeline    = "pipeline"
	fieldSink        = "sink"
	fieldEpoch       = "epoch"
	fieldIncarnation = "incarnation"
	fieldStream      = "stream:"
	fieldDone        = "done:"
	fieldTruncated   = "truncated:"
)

// target is the hash in Redis that says whose rows the keys of the template are.
type target struct {
	client  *redis.Client // of the sink, while it is connected
	scripts scripts
	env     pipeline.SinkEnv
	key     string

	incarnation string            // of the target this run writes to; empty until it was checked
	truncated   map[string]uint64 // owner -> version: older rows of the owner are gone
	// confirmed is how far the target has told us it was, and the cursor before that.
	confirmed map[pipeline.Partition]int64
}

func newTarget(s scripts, env pipeline.SinkEnv, template string) *target {
	return &target{
		scripts: s, env: env, key: reserved + "target:" + template,
		confirmed: maps.Clone(env.Cursor),
	}
}

// claim makes sure, once in a run, that the target is ours or nobody's.
func (t *target) claim(ctx context.Context) error {
	if t.incarnation != "" {
		return nil
	}
	held, err := t.client.HGetAll(ctx, t.key).Result()
	if err != nil {
		return err
	}
	if len(held) == 0 {
		if len(t.env.Cursor) > 0 {
			return t.lost("the sink has a cursor, but its target does not know it")
		}
		if held, err = t.create(ctx); err != nil {
			return err
		}
	}
	if err := t.check(held); err != nil {
		return err
	}
	if err := t.addStreams(ctx, held); err != nil {
		return err
	}
	t.truncated = map[string]uint64{}
	for field, value := range held {
		if owner, ok := strings.CutPrefix(field, fieldTruncated); ok {
			if t.truncated[owner], err = parseVersion(value); err != nil {
				return fmt.Errorf("reading %s of %s: %w", field, t.key, err)
			}
		}
	}
	t.incarnation = held[fieldIncarnation]
	return nil
}

// create makes the hash, unless another worker just did, and returns what is there.
func (t *target) create(ctx context.Context) (map[string]string, error) {
	args := []any{
		fieldPipeline, t.env.Pipeline, fieldSink, t.env.Name,
		fieldEpoch, int(t.env.Epoch), fieldIncarnation, rand.Text()[:10],
	}
	for _, stream := range t.env.Streams {
		args = append(args, fieldStream+stream.Name, stream.ID)
	}
	if err := t.scripts.claim.Run(ctx, t.client, []string{t.key}, args...).Err(); err != nil {
		return nil, err
	}
	return t.client.HGetAll(ctx, t.key).Result()
}

// check compares what the target says of itself with this run.
func (t *target) check(held map[string]string) error {
	if held[fieldIncarnation] == "" {
		return t.foreign("it is no target of Daybook")
	}
	if epoch := held[fieldEpoch]; epoch != strconv.Itoa(int(t.env.Epoch)) {
		return t.foreign(fmt.Sprintf("it is of epoch %s, this run of epoch %d", epoch, t.env.Epoch))
	}
	shared := false
	for _, stream := range t.env.Streams {
		id, ok := held[fieldStream+stream.Name]
		if ok && id != stream.ID {
			return t.foreign(fmt.Sprintf("it was filled from another stream %s (id %s, now %s)", stream.Name, id, stream.ID))
		}
		shared = shared || ok
	}
	if !shared {
		return t.foreign(fmt.Sprintf("it is filled by sink %s of pipeline %s from other streams", held[fieldSink], held[fieldPipeline]))
	}
	return t.checkMarks(held)
}

// checkMarks finds a target that has forgotten what it had confirmed: marks are written
// before a cursor is committed, so none is below the cursor.
func (t *target) checkMarks(held map[string]string) error {
	back := map[string][]string{} // stream -> partition:offset
	for p, confirmed := range t.confirmed {
		mark, err := strconv.ParseInt(held[t.doneField(p)], 10, 64)
		if err != nil {
			mark = 0 // no Flush has got here
		}
		if mark < confirmed {
			back[p.Stream] = append(back[p.Stream], fmt.Sprintf("%d:%d", p.Number, mark))
		}
	}
	if len(back) == 0 {
		return nil
	}
	var positions []string
	for _, stream := range slices.Sorted(maps.Keys(back)) {
		slices.Sort(back[stream])
		positions = append(positions, stream+"/"+strings.Join(back[stream], ","))
	}
	return &pipeline.StopError{
		Code: "target-set-back", Where: t.key,
		Err: errors.New("redis has forgotten changes that it had confirmed: a server took over that lagged, or an old copy was loaded"),
		Fix: t.replay(strings.Join(positions, " and ")),
	}
}

// addStreams records streams that the sink reads since its section was changed.
func (t *target) addStreams(ctx context.Context, held map[string]string) error {
	var missing []any
	for _, stream := range t.env.Streams {
		if _, ok := held[fieldStream+stream.Name]; !ok {
			missing = append(missing, fieldStream+stream.Name, stream.ID)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return t.client.HSet(ctx, t.key, missing...).Err()
}

// owned is what stands beside the version of each row: the row's target, for there may be
// several in one database, its stream and table. By it a truncate finds its rows.
func (t *target) owned(it *item) string { return t.incarnation + " " + it.owner() }

// mark records the checkpoint that is durable now. That it still finds the target it
// began with is the proof that nothing emptied the server in between.
func (t *target) mark(ctx context.Context, c pipeline.Checkpoint) error {
	args := []any{t.incarnation}
	for p, offset := range c.Offsets {
		args = append(args, t.doneField(p), t.confirmed[p], offset)
	}
	moved, err := t.scripts.mark.Run(ctx, t.client, []string{t.key}, args...).Int()
	if err != nil {
		return err
	}
	if moved == 0 {
		return t.missed(ctx)
	}
	t.confirmed = maps.Clone(c.Offsets)
	return nil
}

// missed says why a mark could not be moved.
func (t *target) missed(ctx context.Context) error {
	held, err := t.client.HGetAll(ctx, t.key).Result()
	if err != nil {
		return err
	}
	if held[fieldIncarnation] == t.incarnation {
		if err := t.checkMarks(held); err != nil {
			return err
		}
	}
	return t.lost("the target was emptied or replaced while the sink was writing")
}

// setTruncated records that rows of the owner older than version are gone.
func (t *target) setTruncated(ctx context.Context, owner string, version uint64) error {
	if err := t.client.HSet(ctx, t.key, fieldTruncated+owner, hexVersion(version)).Err(); err != nil {
		return err
	}
	t.truncated[owner] = version
	return nil
}

func (t *target) doneField(p pipeline.Partition) string {
	return fmt.Sprintf("%s%s/%s:%s/%d", fieldDone, t.env.Pipeline, t.env.Name, p.Stream, p.Number)
}

func (t *target) foreign(why string) error {
	return &pipeline.StopError{
		Code: "target-of-another", Where: t.key, Err: errors.New(why),
		Fix: "choose another key template or db; or, if the rows there are to go, delete them and this key",
	}
}

func (t *target) lost(why string) error {
	return &pipeline.StopError{
		Code: "target-lost", Where: t.key, Err: errors.New(why),
		Fix: "correct addr or db, if this is the wrong server; else " + t.replay("start"),
	}
}

// replay says how to write again what is missing, which versions make safe. A replay has
// no cursor, so it takes a target that is missing for a new one.
func (t *target) replay(from string) string {
	return fmt.Sprintf("run `daybook replay FILE --sink %s --from %s --into live`, then start the sink again", t.env.Name, from)
}
