package node

// serverStatus is what /status of a server shows.
type serverStatus struct {
	Dir       string   `json:"dir"`
	ClusterID string   `json:"cluster_id"`
	Strays    []string `json:"strays,omitempty"` // folders that the metadata does not know
}

func (s *store) status() serverStatus {
	return serverStatus{Dir: s.dir, ClusterID: s.node.ClusterID(), Strays: s.node.Strays()}
}
