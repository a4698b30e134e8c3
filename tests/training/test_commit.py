"""The commit that a run records."""

import shutil
import subprocess

from keras_caption.training.commit import commit


def test_a_run_knows_its_commit_where_its_code_has_one(tmp_path):
    assert commit(tmp_path) is None  # not in a repository
    (tmp_path / "code").mkdir()
    code = tmp_path / "code" / "__init__.py"
    code.write_text("")
    if shutil.which("git") is None:
        return

    def git(*command):
        who = "-c", "user.name=a", "-c", "user.email=a@example.org"
        subprocess.run(["git", "-C", tmp_path, *who, *command], check=True)

    git("init", "--quiet")
    git("commit", "--quiet", "--allow-empty", "--message=Begin")
    commit.cache_clear()
    assert commit(code.parent) is None  # installed in the repository of something else
    (tmp_path / "README.md").write_text("")
    git("add", ".")
    git("commit", "--quiet", "--message=Add code")
    commit.cache_clear()
    clean = commit(code.parent)
    assert len(clean) >= 10
    (tmp_path / "README.md").write_text("A table that a run wrote.")
    commit.cache_clear()
    assert commit(code.parent) == clean
    code.write_text("1")
    commit.cache_clear()
    assert commit(code.parent) == f"{clean}-dirty"
    commit.cache_clear()
