package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"

	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// RepairOptions are those of `daybook journal repair`.
type RepairOptions struct {
	Dir  string
	Keep string // newer, older, or empty: newer if that can be
	Yes  bool   // do it
	Out  io.Writer
}

// ErrNotRepaired says that there is something to repair, and that it was not asked for.
var ErrNotRepaired = errors.New("nothing was changed: add --yes to do it")

// RepairJournals says what repairs the journals below a folder, and does it if asked to.
func RepairJournals(ctx context.Context, o RepairOptions) error {
	keep := storage.Keep(o.Keep)
	if keep != "" && keep != storage.KeepNewer && keep != storage.KeepOlder {
		return fmt.Errorf("%w: --keep %q: want newer or older", ErrConfig, o.Keep)
	}
	planned := 0
	err := eachJournal(ctx, o.Dir, func(path string) error {
		r, err := storage.PlanRepair(vfs.OS{}, path, keep)
		if err != nil {
			return err
		}
		if r == nil {
			_, err := fmt.Fprintf(o.Out, "%s: nothing to repair\n", path)
			return err
		}
		planned++
		err = printRepair(o.Out, r)
		if err == nil && o.Yes {
			if err = r.Apply(); err == nil {
				_, err = fmt.Fprintf(o.Out, "  done; see that it starts before you throw anything away\n")
			}
		}
		return errors.Join(err, r.Close())
	})
	if err == nil && planned > 0 && !o.Yes {
		return ErrNotRepaired
	}
	return err
}

func printRepair(out io.Writer, r *storage.Repair) error {
	fmt.Fprintf(out, "%s: damaged\n", r.Dir)
	for _, p := range r.Problems {
		d := &storage.DamageError{}
		if errors.As(p, &d) {
			fmt.Fprintf(out, "  %s, positions %d to %d: %s\n", filepath.Base(d.File), d.Position, d.End, d.Reason)
		} else {
			fmt.Fprintf(out, "  %v\n", p)
		}
	}
	switch r.Keep {
	case storage.KeepNewer:
		fmt.Fprintf(out, "  the repair keeps what is newer, and gives up positions %d to %d: the front of the log, up to behind the damage\n", r.From, r.To)
	default:
		fmt.Fprintf(out, "  the repair keeps what is older, and gives up positions %d to %d: the damage and all behind it. The offsets that are lost will be given out again\n", r.From, r.To)
	}
	for _, id := range slices.Sorted(maps.Keys(r.Lost)) {
		p := r.Lost[id]
		fmt.Fprintf(out, "  lost of partition %d: offsets %d to %d, %d records (%d of them can be read)\n", id, p.First, p.Next-1, p.Next-p.First, p.Records)
	}
	for _, f := range r.Files {
		fmt.Fprintf(out, "  moves %s to %s\n", f, r.Quarantine)
	}
	if r.CutFile != "" {
		fmt.Fprintf(out, "  copies %s from byte %d on to %s, and cuts it there\n", r.CutFile, r.CutAt, r.Quarantine)
	}
	return nil
}
