package status

import (
	"time"

	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// Member is a node and how it is.
type Member struct {
	metadata.Member
	Up bool `json:"up"`
	// Since is when it was started, or, while it is down, when it was heard of last; zero if never.
	Since   time.Time    `json:"since,omitzero"`
	Version string       `json:"version,omitempty"`
	Voter   bool         `json:"voter"`
	Leads   int          `json:"leads"`
	Copies  int          `json:"copies"`
	Disk    *disk.Status `json:"disk,omitempty"`
	Problem string       `json:"problem,omitempty"`
}

// Link is what the connections with a member tell of it.
type Link struct {
	Heard time.Time // last; zero if never
	// OneWay says that it reaches the node that looks, which does not reach it; Twin that two processes run as it. Empty if not.
	OneWay, Twin string
}

func (v *View) member(m metadata.Member, voter bool) Member {
	s, a, link := Member{Member: m, Up: v.Up(m.ID), Voter: voter}, v.Answers[m.ID], v.Link(m)
	switch {
	case !s.Up:
		s.Since, s.Problem = link.Heard, link.OneWay
	case a.Err != nil:
		s.Problem = "it does not say how it is: " + a.Err.Error()
	default:
		s.Since, s.Version, s.Disk, s.Problem, s.Copies = a.Started, a.Version, &a.Disk, a.Problem, len(a.Journals)
		for _, c := range a.Journals {
			if c.Leads && v.Observer == nil { // an observer's copies are nobody's group
				s.Leads++
			}
		}
	}
	if s.Problem == "" {
		s.Problem = link.Twin
	}
	return s
}
