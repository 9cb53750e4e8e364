package reorder

// rules are the options that decide a record's order time. A checkpoint carries
// them, because what it left in the buffer can only be found again by judging the
// re-read records as they were judged before.
type rules struct {
	order        Order
	implausible  Disposal
	future, past int64 // µs around the append stamp
}

func newRules(o Options) rules {
	return rules{
		order:       o.Order,
		implausible: o.Implausible,
		future:      micros(o.FutureLimit),
		past:        micros(o.PastLimit),
	}
}

// plausible keeps C6. stamp is not negative and below 2^62, so nothing overflows.
func (r *rules) plausible(time, stamp int64) bool {
	return time <= stamp+r.future && time >= stamp-r.past
}
