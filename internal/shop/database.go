package shop

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
)

// Database is the shop's orders and customers. It is used from one goroutine.
type Database struct {
	db         *sql.DB
	rnd        *rand.Rand
	nextOrder  int
	Statements int
	// Changes is how many records of changes the statements so far make: a change of the key is the end of one row and
	// the beginning of another.
	Changes int
}

// Create makes the tables and their first rows: 300 customers and the given number of
// orders, for the snapshot to find.
func (d *Database) Create(ctx context.Context, orders int) error {
	for _, stmt := range []string{
		"CREATE DATABASE shop CHARACTER SET utf8mb4",
		`CREATE TABLE shop.customers (id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(80) NOT NULL, since DATE NOT NULL)`,
		`CREATE TABLE shop.orders (id BIGINT UNSIGNED PRIMARY KEY, customer BIGINT UNSIGNED NOT NULL, total DECIMAL(12,2) NOT NULL,
			status ENUM('draft','paid','sent','void') NOT NULL, note VARCHAR(200), placed DATETIME(6) NOT NULL)`,
	} {
		if _, err := d.db.ExecContext(ctx, stmt); err != nil {
			return err
		}
	}
	for id := range 300 {
		if err := d.exec(ctx, "INSERT INTO shop.customers VALUES (?, ?, ?)", id+1, fmt.Sprintf("Zoë Müller %d 🛒", id), "2019-02-28"); err != nil {
			return err
		}
	}
	for range orders {
		if err := d.insertOrder(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (d *Database) exec(ctx context.Context, query string, args ...any) error {
	result, err := d.db.ExecContext(ctx, query, args...)
	d.Statements++
	if err != nil {
		return err
	}
	changed, err := result.RowsAffected()
	d.Changes += int(changed)
	return err
}

var statuses = [...]string{"draft", "paid", "sent", "void"}

func (d *Database) insertOrder(ctx context.Context) error {
	d.nextOrder++
	return d.exec(ctx, "INSERT INTO shop.orders VALUES (?, ?, ?, ?, ?, NOW(6))", d.nextOrder, d.rnd.IntN(300)+1,
		fmt.Sprintf("%d.%02d", d.rnd.IntN(100_000), d.rnd.IntN(100)), statuses[d.rnd.IntN(4)], "to be wrapped")
}

// Change makes one random change of an order: a new one, an update, a status that
// enters or leaves the cache's set, another key, or its end.
func (d *Database) Change(ctx context.Context) error {
	id := d.rnd.IntN(d.nextOrder) + 1
	switch d.rnd.IntN(10) {
	case 0, 1, 2:
		return d.insertOrder(ctx)
	case 3, 4:
		return d.exec(ctx, "UPDATE shop.orders SET total = total + 1.10, note = NULL WHERE id = ?", id)
	case 5, 6, 7:
		return d.exec(ctx, "UPDATE shop.orders SET status = ? WHERE id = ?", statuses[d.rnd.IntN(4)], id)
	case 8:
		d.nextOrder++
		before := d.Changes
		err := d.exec(ctx, "UPDATE shop.orders SET id = ? WHERE id = ?", d.nextOrder, id)
		d.Changes += d.Changes - before
		return err
	}
	return d.exec(ctx, "DELETE FROM shop.orders WHERE id = ?", id)
}

// rows reads a table as text, as SELECT shows it, by primary key.
func (d *Database) rows(ctx context.Context, query string) (map[string]map[string]string, error) {
	rows, err := d.db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	out := map[string]map[string]string{}
	for rows.Next() {
		values := make([]*string, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, v := range values {
			if v != nil {
				row[columns[i]] = *v
			}
		}
		out[row["id"]] = row
	}
	return out, rows.Err()
}
