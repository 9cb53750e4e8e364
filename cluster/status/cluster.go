package status

import (
	"slices"

	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/observer"
)

// Cluster is the state of the cluster as a node sees it.
type Cluster struct {
	ClusterID string `json:"cluster_id"`
	// Node is the one that was asked.
	Node int32 `json:"node"`
	// Stale is why the list of nodes and journals may be old: no leader of the metadata was reached. Empty: it is not.
	Stale string `json:"stale,omitempty"`
	// Controller leads the metadata; -1 if nobody is known to.
	Controller int32 `json:"controller"`
	// Voters are the nodes that elect it.
	Voters []int32 `json:"voters"`
	Counts Counts  `json:"counts"`

	Members  []Member  `json:"members"`
	Journals []Journal `json:"journals"`
	// Waits says of journals on their way that get no further what they wait for.
	Waits []string `json:"waits,omitempty"`

	// Observer is how far the copies are of the observer that was asked, for which there are no journals above and no member
	// but itself; nil for nodes.
	Observer *observer.Status `json:"observer,omitempty"`
}

// View is what a node knows, of which the status is made.
type View struct {
	ClusterID string
	// Node is the one that looks, Controller leads the metadata, Voters elect it; Stale is why this may be old.
	Node, Controller int32
	Stale            string
	Voters           []int32

	Members []metadata.Member
	Streams []*metadata.Stream
	// Up says whether a node was heard of lately.
	Up func(node int32) bool
	// Answers has one of each of Members; of those that are down it is not looked at.
	Answers map[int32]*Answer
	// Link is what the connections with a member tell of it.
	Link func(metadata.Member) Link
	// Waits says what a journal waits for that gets no further on its way; empty if nothing.
	Waits func(s *metadata.Stream, journal int32) string
	// Observer is how far the copies are of an observer, which has no Streams here; nil for nodes.
	Observer *observer.Status

	copies map[int32]map[metadata.StreamJournal]*Copy // in Answers, by their nodes
}

// Of puts together what a node knows.
func Of(v View) Cluster {
	v.copies = map[int32]map[metadata.StreamJournal]*Copy{}
	for node, a := range v.Answers {
		v.copies[node] = map[metadata.StreamJournal]*Copy{}
		for i := range a.Journals {
			v.copies[node][a.Journals[i].StreamJournal] = &a.Journals[i]
		}
	}
	s := Cluster{ClusterID: v.ClusterID, Node: v.Node, Stale: v.Stale, Controller: v.Controller, Voters: v.Voters, Observer: v.Observer}
	for _, m := range v.Members {
		s.Members = append(s.Members, v.member(m, slices.Contains(v.Voters, m.ID)))
	}
	for _, stream := range v.Streams {
		for j := range stream.Journals {
			s.Journals = append(s.Journals, v.journal(stream, j))
			if why := v.Waits(stream, j); why != "" {
				s.Waits = append(s.Waits, why)
			}
		}
	}
	s.count()
	return s
}
