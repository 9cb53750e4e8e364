package recovery

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// Errors of a recovery.
var (
	// ErrNoRecovery: the nodes that are there are a majority of everything.
	ErrNoRecovery = errors.New("nothing is lost: start the nodes")
	// ErrBegun: a recovery was begun in the directory and has to be finished first.
	ErrBegun = errors.New("a recovery was begun in this directory and is not finished")
)

// termsSkipped is how far the new terms are above those that the survivors know: nodes that are gone may have elected
// leaders of which these never heard, and clients refuse a leader's epoch that is lower than one they have seen.
const termsSkipped = 100

// Plan is with what a cluster goes on that lost its majority for good. It follows from the reports of the
// survivors alone: each of them works out the same one.
type Plan struct {
	Cluster string `json:"cluster_id"`
	// Generation is that of the cluster from now on.
	Generation uint64  `json:"generation"`
	Survivors  []int32 `json:"survivors"`
	// Gone are the nodes that are no part of the cluster any more.
	Gone []metadata.Member `json:"gone"`
	// Metadata is the node with whose metadata the cluster goes on, MetadataTerm that of the entries that say so.
	Metadata     int32            `json:"metadata"`
	MetadataTerm uint64           `json:"metadata_term"`
	Journals     []PlannedJournal `json:"journals"`
	// Lost are journals of which no survivor has a copy that can be used.
	Lost []PlacedJournal `json:"lost,omitempty"`
}

// PlannedJournal is a journal and the copy that it goes on with.
type PlannedJournal struct {
	PlacedJournal
	Base   metadata.Replica `json:"base"`
	Others []int32          `json:"others,omitempty"` // survivors that get another copy in place of theirs
	Term   uint64           `json:"term"`
	// HadMajority says that the survivors' copies are a majority: then nothing of it is lost.
	HadMajority bool `json:"had_majority,omitempty"`
	// Copy is the one that it goes on with.
	Copy FoundCopy `json:"copy"`
}

// MakePlan decides with what the cluster goes on: of the metadata, and of each journal, with the copy whose log is
// furthest. The error is ErrNoRecovery if none is needed.
func MakePlan(reports []*Report) (*Plan, error) {
	reports = slices.Clone(reports)
	slices.SortFunc(reports, func(a, b *Report) int { return cmp.Compare(a.Node, b.Node) })
	if err := checkReports(reports); err != nil {
		return nil, err
	}
	base := slices.MaxFunc(reports, func(a, b *Report) int {
		return cmp.Or(a.Metadata.compare(b.Metadata), cmp.Compare(b.Node, a.Node))
	})
	p := &Plan{Cluster: base.Cluster, Generation: base.Generation + 1, Metadata: base.Node}
	for _, r := range reports {
		p.Survivors = append(p.Survivors, r.Node)
		p.MetadataTerm = max(p.MetadataTerm, r.Metadata.Term, r.Metadata.CurrentTerm)
	}
	p.MetadataTerm += termsSkipped
	for _, m := range base.Members {
		if !slices.Contains(p.Survivors, m.ID) {
			p.Gone = append(p.Gone, m)
		}
	}
	p.planJournals(base, reports)
	if p.majority(base.Voters) && len(p.Lost) == 0 && !slices.ContainsFunc(p.Journals, func(j PlannedJournal) bool { return !j.HadMajority }) {
		return nil, ErrNoRecovery
	}
	return p, nil
}

func checkReports(reports []*Report) error {
	if len(reports) == 0 {
		return errors.New("no report of a node is given")
	}
	first := reports[0]
	for i, r := range reports {
		switch {
		case r.Cluster != first.Cluster:
			return fmt.Errorf("node %d is of cluster %s, node %d of cluster %s: they do not belong together", r.Node, r.Cluster, first.Node, first.Cluster)
		case r.Generation != first.Generation:
			return fmt.Errorf("node %d was recovered to generation %d, node %d to generation %d: carry the same recovery out on all survivors and start their servers, or, "+
				"if the majority was lost once more since, make all reports anew", first.Node, first.Generation, r.Node, r.Generation)
		case i > 0 && r.Node == reports[i-1].Node:
			return fmt.Errorf("node %d is there twice", r.Node)
		}
	}
	return nil
}

// majority says whether more than half of some nodes survive.
func (p *Plan) majority(of []int32) bool {
	n := 0
	for _, id := range of {
		if slices.Contains(p.Survivors, id) {
			n++
		}
	}
	return 2*n > len(of)
}

func (p *Plan) planJournals(base *Report, reports []*Report) {
	placed := map[JournalID]PlacedJournal{}
	for _, j := range base.Journals {
		placed[j.JournalID] = j
	}
	for _, id := range slices.SortedFunc(maps.Keys(placed), JournalID.compare) {
		j := PlannedJournal{PlacedJournal: placed[id]}
		if p.choose(&j, reports) {
			p.Journals = append(p.Journals, j)
		} else {
			p.Lost = append(p.Lost, j.PlacedJournal)
		}
	}
}

// choose takes the copy that is furthest.
func (p *Plan) choose(j *PlannedJournal, reports []*Report) (found bool) {
	var good []int32
	for _, r := range reports {
		i := slices.IndexFunc(r.Copies, func(c FoundCopy) bool { return c.JournalID == j.JournalID })
		if i < 0 {
			continue
		}
		c := r.Copies[i]
		j.Others = append(j.Others, r.Node)
		j.Term = max(j.Term, c.Term, c.CurrentTerm)
		if !c.usable() {
			continue
		}
		if !c.Doubt {
			good = append(good, r.Node)
		}
		if !found || c.LogEnd.compare(j.Copy.LogEnd) > 0 {
			j.Copy, j.Base, found = c, metadata.Replica{Node: r.Node, Born: c.Born}, true
		}
	}
	j.Term += termsSkipped
	j.Others = slices.DeleteFunc(j.Others, func(id int32) bool { return id == j.Base.Node })
	n := 0
	for _, id := range j.Replicas {
		if slices.Contains(good, id) {
			n++
		}
	}
	j.HadMajority = 2*n > len(j.Replicas)
	return found
}

// command is what the metadata has to know.
func (p *Plan) command() *metadata.RecoverCluster {
	c := &metadata.RecoverCluster{Generation: p.Generation, Survivors: p.Survivors}
	for _, j := range p.Journals {
		c.Journals = append(c.Journals, metadata.RecoveredJournal{Stream: j.Stream, Journal: j.Journal, Base: j.Base, Others: j.Others})
	}
	return c
}
