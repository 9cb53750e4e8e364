package cluster

// Watch tells when any of its partitions has new records or another leader. Close it.
type Watch struct {
	changed chan struct{}
	stops   []func()
}

// NewWatch returns a watch of the partitions whose journals can be opened.
func NewWatch(partitions []*Partition) *Watch {
	w := &Watch{changed: make(chan struct{}, 1)}
	numbers := map[*journalHandle][]uint32{}
	for _, p := range partitions {
		numbers[p.handle] = append(numbers[p.handle], uint32(p.number))
	}
	for h, of := range numbers {
		if j, err := h.journal(); err == nil {
			w.stops = append(w.stops, j.Notify(w.changed, of...))
		}
		if h.all.several {
			w.stops = append(w.stops, h.watch(w.changed))
		}
	}
	return w
}

// Changed receives a value after new records have come. It may also do so once
// without: look again.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Close ends the watch.
func (w *Watch) Close() {
	for _, stop := range w.stops {
		stop()
	}
	w.stops = nil
}
