package node

import (
	"github.com/daybook-data/daybook/cluster/disk"
	"github.com/daybook-data/daybook/cluster/observer"
)

// serverStatus is what /status of a server shows.
type serverStatus struct {
	Dir       string      `json:"dir"`
	ClusterID string      `json:"cluster_id"`
	Strays    []string    `json:"strays,omitempty"` // folders that the metadata does not know
	Disk      disk.Status `json:"disk"`
	Problem   string      `json:"problem,omitempty"` // why data does not move
	// Observer is how far an observer's copies are; nil where there are none.
	Observer *observer.Status `json:"observer,omitempty"`
}

func (s *store) status() serverStatus {
	st := serverStatus{Dir: s.dir, ClusterID: s.node.ClusterID(), Strays: s.node.Strays(), Disk: s.node.Disk()}
	if o := s.node.Observer(); o != nil {
		copies := o.Status()
		st.Observer = &copies
	}
	if err := s.node.Health(); err != nil {
		st.Problem = err.Error()
	}
	return st
}
