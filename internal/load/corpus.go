package load

import (
	"fmt"
	"math/rand/v2"
)

const (
	// leastSize leaves room for what makes the records of a corpus differ.
	leastSize = 16
	// distinctBytes bounds the memory of a corpus.
	distinctBytes = 16 << 20
	mostDistinct  = 16_384
)

// Corpus returns distinct records of exactly size bytes, the same on each call. Kind is json, constant or random.
func Corpus(kind string, size int) [][]byte {
	rnd := rand.New(rand.NewPCG(1, 2))
	records := make([][]byte, max(64, min(mostDistinct, distinctBytes/size)))
	of := map[string]func(*rand.Rand, int, int) []byte{"json": change, "constant": constant, "random": random}[kind]
	for i := range records {
		records[i] = of(rnd, i, size)
	}
	return records
}

// change is a row's change as change data capture writes it down: the row before and after, where it came from, and
// the schema's constant text up to the size. LZ4 takes a batch of 1 MB of them to about 1/4.25.
func change(r *rand.Rand, i, size int) []byte {
	status := []string{"new", "paid", "packed", "sent", "closed"}
	ms := 1_790_000_000_000 + int64(i)*17
	row := fmt.Sprintf(`"id":%d,"customer_id":%d,"total":"%d.%02d","currency":"EUR","note":"%016x%016x","token":"%s","address":{"street":"Hauptstrasse %d","zip":"%05d","city":"Berlin"}`,
		10_000_000+i*3, r.IntN(900_000)+100_000, r.IntN(900)+10, r.IntN(100), r.Uint64(), r.Uint64(), letters(r, 92), r.IntN(200), r.IntN(100_000))
	b := fmt.Appendf(nil, `{"op":"u","ts_ms":%d,"source":{"connector":"mysql","name":"shop","db":"shop","table":"orders","server_id":1,"gtid":"8f3b2c9e-3d5f-11ee-be56-0242ac120002:%d","file":"binlog.000042","pos":%d,"row":%d},"before":{%s,"status":"%s","updated_at":"2026-11-29T12:%02d:%02d.%06dZ"},"after":{%s,"status":"%s","updated_at":"2026-11-29T12:%02d:%02d.%06dZ"}`,
		ms, 4_000_000+i, r.Uint32(), r.IntN(8), row, status[r.IntN(5)], r.IntN(60), r.IntN(60), r.IntN(1_000_000), row, status[r.IntN(5)], r.IntN(60), r.IntN(60), r.IntN(1_000_000))
	return fill(b, size)
}

const rest = `,"schema":{"version":3,"fields":["id","customer_id","total","currency","note","token","address","status","updated_at"],"key":["id"],"charset":"utf8mb4"}`

// fill makes b exactly size bytes: whole JSON where there is room.
func fill(b []byte, size int) []byte {
	for len(b) < size-1 {
		b = append(b, rest[:min(len(rest), size-1-len(b))]...)
	}
	return append(b[:size-1], '}')
}

func letters(r *rand.Rand, n int) []byte {
	const of = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	b := make([]byte, n)
	for i := range b {
		b[i] = of[r.IntN(len(of))]
	}
	return b
}

// constant is a record of which all but a number is the same in all, as load tests that boast of their rate send. LZ4
// takes batches of 100 of 1 KiB to about 1/38.
func constant(r *rand.Rand, i, size int) []byte {
	return fill(fmt.Appendf(nil, `{"n":%d,"k":"%s"`, i, letters(r, 10)), size)
}

// random is noise, as of encrypted or already compressed values.
func random(r *rand.Rand, _, size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}
