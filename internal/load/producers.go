package load

// producers makes the producers and a function that tells how often each record of the corpus was acknowledged.
func (r *run) producers() (all []producer, acked func() []int64, err error) {
	if r.o.Mode == Consume {
		return nil, nil, nil
	}
	if r.o.Raw {
		return r.rawProducers()
	}
	var apps []*appProducer
	for i := range r.o.Clients {
		p, err := newAppProducer(r, i)
		if err != nil {
			return nil, nil, err
		}
		apps, all = append(apps, p), append(all, p)
	}
	return all, func() []int64 {
		n := make([]int64, len(r.corpus))
		for _, p := range apps {
			for i := range p.acked {
				n[i] += p.acked[i].Load()
			}
		}
		return n
	}, nil
}

func (r *run) rawProducers() (all []producer, acked func() []int64, err error) {
	shares, err := r.t.shares(r.o.Clients, false)
	if err != nil {
		return nil, nil, err
	}
	raws, err := newRawProducers(r, shares)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range raws {
		all = append(all, p)
	}
	return all, func() []int64 {
		n := make([]int64, len(r.corpus))
		for _, p := range raws {
			for _, q := range p.requests {
				for _, b := range q.batches {
					for i := range b.n {
						n[(b.first+i)%len(n)] += q.acked.Load()
					}
				}
			}
		}
		return n
	}, nil
}
