"""multiply(store, count) fills a store, which no coordinator may have open, with copies of its newest record for other keys, machines and
models, so that web pages and lists become long."""

import contextlib
import hashlib
import sqlite3
import struct

MACHINES, MODELS = 5, 200


def sha256(data):
    return hashlib.sha256(data).digest()


def row_digest(*values):
    """Returns the digest of a row of texts, computed as the store does."""
    def text(value):
        return b"t" + struct.pack("<Q", len(value)) + value

    return sha256(text(b"warploom.row") + b"i" + struct.pack("<Q", 1) + b"".join(text(value) for value in values))


def field(text):
    """Returns a short text as the bytes of a protobuf message: its length, then its UTF-8."""
    return bytes([len(text.encode())]) + text.encode()


def columns_of(store, table):
    return [row[1] for row in store.execute(f"PRAGMA table_info({table})")]


def copy_row(store, table, row, changed):
    names = columns_of(store, table)
    values = dict(zip(names, row)) | changed
    store.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", [values[name] for name in names])


def add_models(store):
    """Adds jobs without results, of MODELS different models. Returns the jobs' ids."""
    job = dict(zip(columns_of(store, "jobs"), store.execute("SELECT * FROM jobs ORDER BY id DESC LIMIT 1").fetchone()))
    ids = [job["id"] + 1 + number for number in range(MODELS)]
    for number, name in enumerate(ids):
        changed = {"id": name, "request_id": f"copy {number}", "label": f"model-{number:03}.onnx", "result": None, "result_digest": None, "state": 4}
        copy_row(store, "jobs", list(job.values()), changed)
    return ids


def multiply(path, count):
    with contextlib.closing(sqlite3.connect(path)) as store:
        record = dict(zip(columns_of(store, "records"), store.execute("SELECT * FROM records WHERE blessed = 1 ORDER BY id DESC LIMIT 1").fetchone()))
        payload = dict(zip(columns_of(store, "payloads"), store.execute("SELECT * FROM payloads WHERE record = ?", [record["id"]]).fetchone()))
        prelude, source = (store.execute("SELECT digest FROM texts WHERE id = ?", [payload[name]]).fetchone()[0] for name in ("prelude", "source"))
        machine = store.execute("SELECT name FROM machines WHERE id = ?", [record["machine"]]).fetchone()[0]
        target, device = machine.split(" ", 1)
        machines = []
        for number in range(MACHINES):
            name = f"{device[:-1]}{number}"
            store.execute("INSERT OR IGNORE INTO machines (name) VALUES (?)", [f"{target} {name}"])
            machines.append((name, store.execute("SELECT id FROM machines WHERE name = ?", [f"{target} {name}"]).fetchone()[0]))
        jobs = add_models(store)
        first = store.execute("SELECT max(id) FROM records").fetchone()[0] + 1
        for number in range(count):
            digest, key = sha256(b"record %d" % number), sha256(b"key %d" % number)
            name, machine = machines[number // MODELS % MACHINES]
            # In the stored protobuf message, each text is replaced by one of the same length, so that the message stays valid.
            message = payload["bytes"].replace(record["digest"].hex().encode(), digest.hex().encode()).replace(record["key"].hex().encode(), key.hex().encode())
            message = message.replace(field(device), field(name))
            changed = {"id": first + number, "digest": digest, "key": key, "machine": machine, "created_ms": record["created_ms"] + number // 7}
            copy_row(store, "records", list(record.values()), changed)
            changed = {"record": first + number, "texts": row_digest(digest, prelude, source), "digest": sha256(message), "bytes": message}
            copy_row(store, "payloads", list(payload.values()), changed)
            store.execute("INSERT INTO job_groups (job_id, key, search_id) VALUES (?, ?, ?)", [jobs[number % MODELS], key.hex(), record["search_id"]])
        store.commit()
