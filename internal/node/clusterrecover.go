package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/recovery"
	"github.com/daybook-data/daybook/internal/vfs"
)

// RecoverOptions are those of `daybook cluster recover`.
type RecoverOptions struct {
	With       []string // files with the reports of other survivors
	Report     string   // file that gets this node's report; none if empty
	AcceptLoss bool
	Log        *slog.Logger
}

// ErrNotRecovered says that a recovery was not asked for.
var ErrNotRecovered = errors.New("nothing was changed: add --accept-loss to go on with this")

// Recover says with what a cluster would go on that lost its majority for good, and makes it so if it is asked to.
func (v *ClusterVerbs) Recover(ctx context.Context, o RecoverOptions) error {
	begun, err := recovery.Begun(vfs.OS{}, v.Dir)
	if err != nil {
		return err
	}
	plan := begun
	if begun == nil {
		if plan, err = v.planRecovery(o); err != nil || plan == nil {
			return err
		}
	} else if !v.JSON {
		fmt.Fprintf(v.Out, "A recovery was begun on %s and not finished. It goes on as it was begun:\n\n", v.Dir)
	}
	if v.JSON {
		err = v.printJSON(plan)
	} else {
		err = printRecovery(v.Out, plan)
	}
	if err != nil {
		return err
	}
	if err := stillThere(ctx, plan.Gone); err != nil {
		return err
	}
	if !o.AcceptLoss {
		return ErrNotRecovered
	}
	if err := recovery.Apply(vfs.OS{}, v.Dir, plan, o.Log); err != nil {
		return err
	}
	return v.done(nil, "\ndone: start the server on %s, and let new nodes join (daybook cluster add): journals get as many copies again as they had", v.Dir)
}

// planRecovery reads this node's folder and the others' reports. The plan is nil where only a report was asked for.
func (v *ClusterVerbs) planRecovery(o RecoverOptions) (*recovery.Plan, error) {
	if _, err := os.Stat(v.Dir); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	own, err := recovery.Inspect(vfs.OS{}, v.Dir)
	var locked *vfs.LockedError
	if errors.As(err, &locked) {
		return nil, fmt.Errorf("%w: the server has to be stopped: %w", ErrEnvironment, err)
	}
	if err != nil {
		return nil, err
	}
	if o.Report != "" {
		b, err := json.MarshalIndent(own, "", "  ")
		if err != nil {
			return nil, err
		}
		if err := vfs.WriteFile(vfs.OS{}, o.Report, append(b, '\n'), 0o644); err != nil {
			return nil, err
		}
		return nil, v.done(nil, "%s holds the report of node %d", o.Report, own.Node)
	}
	reports := []*recovery.Report{own}
	for _, path := range o.With {
		r, err := readReport(path)
		if err != nil {
			return nil, fmt.Errorf("%w: reading the report %s: %w", ErrConfig, path, err)
		}
		reports = append(reports, r)
	}
	return recovery.MakePlan(reports)
}

func readReport(path string) (*recovery.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var r recovery.Report
	d := json.NewDecoder(f)
	d.DisallowUnknownFields()
	return &r, d.Decode(&r)
}

// stillThere refuses to give up nodes that answer.
func stillThere(ctx context.Context, gone []metadata.Member) error {
	dialer := net.Dialer{Timeout: 2 * time.Second}
	for _, m := range gone {
		if m.Address == "" {
			continue
		}
		if conn, err := dialer.DialContext(ctx, "tcp", m.Address); err == nil {
			_ = conn.Close() // nothing was said on it
			return fmt.Errorf("node %d answers at %s: it is not gone. Start this node, and if they are a majority the cluster goes on; or stop that one, and give its report with --with", m.ID, m.Address)
		}
	}
	return nil
}

// printRecovery says with what the cluster goes on, and what that costs.
func printRecovery(out io.Writer, p *recovery.Plan) error {
	fmt.Fprintf(out, "cluster %s would go on with nodes %s, as generation %d, with the metadata of node %d\n", p.Cluster, nodesText(p.Survivors), p.Generation, p.Metadata)
	for _, m := range p.Gone {
		fmt.Fprintf(out, "node %d (%s) is given up: what only it had is lost, and it can't come back with it\n", m.ID, m.Address)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "JOURNAL\tCOPY OF NODE\tENTRY\tTERM\tLAST WRITTEN\tWHAT MAY BE LOST")
	journals := slices.Clone(p.Journals)
	slices.SortStableFunc(journals, func(a, b recovery.PlannedJournal) int { return strings.Compare(a.Name, b.Name) })
	for _, j := range journals {
		loss := "what was acknowledged after that"
		if j.HadMajority {
			loss = "nothing: most of its copies are here"
		}
		if j.Copy.Doubt {
			loss += "; the machine lost power, and maybe what it had acknowledged last"
		}
		fmt.Fprintf(w, "%s/%d\t%d\t%d\t%d\t%s\t%s\n", j.Name, j.Journal, j.Base.Node, j.Copy.Entry, j.Copy.Term, timeOrDash(j.Copy.At.UTC()), loss)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, j := range journals {
		for _, f := range j.Copy.Partitions {
			if f.Read > f.Next {
				fmt.Fprintf(out, "%s/%d: partition %d ends at offset %d, but group %s has read up to %d: AT LEAST %d RECORDS ARE LOST, and their offsets will be given out again\n",
					j.Name, j.Journal, f.Partition, f.Next, f.Group, f.Read, f.Read-f.Next)
			}
		}
	}
	for _, j := range p.Lost {
		fmt.Fprintf(out, "%s/%d: NO COPY IS LEFT (it was on nodes %s): it stays without a leader; delete the stream when you are sure\n", j.Name, j.Journal, nodesText(j.Replicas))
	}
	return nil
}
