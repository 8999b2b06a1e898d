# For Django's own test suite: the server is in the PG* environment.
import os

_db = {"ENGINE": "django.db.backends.postgresql", "HOST": os.environ["PGHOST"],
       "PORT": os.environ["PGPORT"], "USER": "postgres",
       # Django knows its indexes by the name of their method: see docs/limitations.md.
       "OPTIONS": {"options": "-c inplace.default_index_method=btree"}}
DATABASES = {"default": dict(_db, NAME="django"), "other": dict(_db, NAME="django_other")}
SECRET_KEY = "x"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "inplace_runner.Runner"
