"""What is written into a master's database while no master runs."""
import contextlib
import sqlite3


def copies(regatta, run, n):
    """n more runs like this one, written into the database of a master that has left."""
    with contextlib.closing(sqlite3.connect(regatta.home / "regatta.db")) as db:
        columns = [c[1] for c in db.execute("PRAGMA table_info(run)") if c[1] not in ("no", "id", "request_id")]
        of_job = ", ".join(c[1] for c in db.execute("PRAGMA table_info(job)") if c[1] != "run")
        for i in range(n):
            no = db.execute(f"INSERT INTO run (id, request_id, {', '.join(columns)}) SELECT 'many-{i:04}', 'request-of-{i:08}', "
                            f"{', '.join(columns)} FROM run WHERE id = ?", (run,)).lastrowid
            db.execute(f"INSERT INTO job (run, {of_job}) SELECT ?, {of_job} FROM job LIMIT 1", (no,))
        db.commit()
