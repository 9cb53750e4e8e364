package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"
)

// shop makes the traffic: rows, requests and events. It knows how much it made.
type shop struct {
	db         *sql.DB
	web        string // the shop's pages, behind nginx
	collect    string // where its app posts events
	rnd        *rand.Rand
	nextOrder  int
	requests   int
	events     int
	statements int
}

// createTables makes the tables and their first rows, before Daybook runs: the snapshot
// has to find them.
func (s *shop) createTables(ctx context.Context) error {
	for _, stmt := range []string{
		"CREATE DATABASE shop CHARACTER SET utf8mb4",
		`CREATE TABLE shop.customers (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(80) NOT NULL, since DATE NOT NULL)`,
		`CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, customer BIGINT UNSIGNED NOT NULL, total DECIMAL(12,2) NOT NULL,
			status ENUM('draft','paid','sent','void') NOT NULL, note VARCHAR(200), placed DATETIME(6) NOT NULL)`,
	} {
		if _, err := s.db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	for id := range 300 {
		if err := s.exec(ctx, "INSERT INTO shop.customers VALUES (?, ?, ?)", id+1, fmt.Sprintf("Zoë Müller %d 🛒", id), "2019-02-28"); err != nil {
			return err
		}
	}
	for range 2000 {
		if err := s.insertOrder(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *shop) exec(ctx context.Context, query string, args ...any) error {
	_, err := s.db.ExecContext(ctx, query, args...)
	s.statements++
	return err
}

var statuses = []string{"draft", "paid", "sent", "void"}

func (s *shop) insertOrder(ctx context.Context) error {
	s.nextOrder++
	return s.exec(ctx, "INSERT INTO shop.orders VALUES (?, ?, ?, ?, ?, NOW(6))", s.nextOrder, s.rnd.IntN(300)+1,
		fmt.Sprintf("%d.%02d", s.rnd.IntN(100_000), s.rnd.IntN(100)), statuses[s.rnd.IntN(4)], "to be wrapped")
}

// change makes one random change of an order: a new one, an update, a status that
// enters or leaves the cache's set, another key, or its end.
func (s *shop) change(ctx context.Context) error {
	id := s.rnd.IntN(s.nextOrder) + 1
	switch s.rnd.IntN(10) {
	case 0, 1, 2:
		return s.insertOrder(ctx)
	case 3, 4:
		return s.exec(ctx, "UPDATE shop.orders SET total = total + 1.10, note = NULL WHERE id = ?", id)
	case 5, 6, 7:
		return s.exec(ctx, "UPDATE shop.orders SET status = ? WHERE id = ?", statuses[s.rnd.IntN(4)], id)
	case 8:
		s.nextOrder++
		return s.exec(ctx, "UPDATE shop.orders SET id = ? WHERE id = ?", s.nextOrder, id)
	}
	return s.exec(ctx, "DELETE FROM shop.orders WHERE id = ?", id)
}

// visit asks nginx for a page, which logs a line.
func (s *shop) visit(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/item/%d", s.web, s.rnd.IntN(1000)), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	s.requests++
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// post sends one event and, as apps do, sends it again until it is accepted: the
// id makes that harmless.
func (s *shop) post(ctx context.Context) error {
	s.events++
	// A phone's clock: up to a second behind.
	ts := time.Now().Add(-time.Duration(s.rnd.IntN(1000)) * time.Millisecond)
	body, err := json.Marshal(map[string]any{"id": fmt.Sprintf("event-%d", s.events), "ts": ts.UTC().Format(time.RFC3339Nano), "what": "add-to-cart"})
	if err != nil {
		return err
	}
	return until(ctx, 30*time.Second, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.collect, bytes.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode/100 != 2 {
			text, _ := io.ReadAll(resp.Body)
			return fmt.Errorf("posting an event: %s: %s", resp.Status, text)
		}
		return nil
	})
}

// trade makes n rounds of changes, page views and events.
func (s *shop) trade(ctx context.Context, n int) error {
	for range n {
		for _, act := range []func(context.Context) error{s.change, s.change, s.change, s.visit, s.post} {
			if err := act(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
