# The steps of README.Debian, up to the start of the unit.
useradd --system --user-group --home-dir /srv/git --shell /usr/sbin/nologin git
install -d -o git -g git /srv/git
cp -R /work/project /srv/git/project
cat >/srv/git/pronto-server.toml <<'END'
root = "."
[http]
listen = ["127.0.0.1:0"]
END
chown -R git:git /srv/git
unit=/usr/lib/systemd/system/pronto-server.service
systemd-analyze verify --man=no "$unit"
cd /srv/git
setpriv --reuid git --regid git --init-groups $(sed -n 's/^ExecStartPre=//p' "$unit")
