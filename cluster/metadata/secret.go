package metadata

// PutSecret gives the cluster its secret; the first one stays.
type PutSecret struct {
	Secret string `json:"secret"`
}

func (m *State) putSecret(c *PutSecret) Result {
	if m.secret == "" {
		m.secret = c.Secret
	}
	return Result{Value: m.secret}
}

// DecoySecret is the secret of the cluster, in hex; empty before it has one.
func (m *State) DecoySecret() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.secret
}
