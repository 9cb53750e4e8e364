package load

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// producers makes the producers and a function that tells how often each record of the corpus was acknowledged.
func (r *run) producers(ctx context.Context) (all []producer, acked func() []int64, err error) {
	if r.o.Mode == Consume {
		return nil, nil, nil
	}
	if r.o.Raw {
		return r.rawProducers(ctx)
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

func (r *run) rawProducers(ctx context.Context) (all []producer, acked func() []int64, err error) {
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
	if err := connectAll(ctx, raws); err != nil {
		return nil, nil, err
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

// connectAll connects all producers, or none.
func connectAll(ctx context.Context, raws []*rawProducer) error {
	var group errgroup.Group
	group.SetLimit(32) // a server's queue of connections to be accepted is bounded
	for _, p := range raws {
		group.Go(func() error { return p.connect(ctx) })
	}
	err := group.Wait()
	if err != nil {
		for _, p := range raws {
			p.close()
		}
	}
	return err
}
