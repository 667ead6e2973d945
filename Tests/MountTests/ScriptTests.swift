import Glibc
import MountKit
import Testing

/// What lies in mount-scripts: the mount(8) helper and the systemd unit.
@Suite(.serialized) struct ScriptTests {
  private let helper = Repository.path("mount-scripts/mount.fuse.sheaf")

  @Test(arguments: Owner.possible)
  func theHelperMountsAndForwardsOptions(_ owner: Owner) throws {
    let library = try MountedLibrary(as: try owner.user())
    do {
      let environment: [String: String?] = ["SHEAF_BIN": try SheafProgram.path()]
      try Command(
        [helper, library.library, library.mountpoint, "-n", "-o", "as=carol@example.com", "-o", "rw,nosuid"],
        as: library.user, environment: environment
      ).succeed()
      try library.shell("echo text > document")
      #expect(try library.attribute("user.sheaf.editor", of: "document") == "carol@example.com")
      try library.unmount()
      try Command(
        [helper, library.library, library.mountpoint, "-o", "ro,as=carol@example.com"], as: library.user,
        environment: environment
      ).succeed()
      let refused = try Command.shell("echo text > new", as: library.user, in: library.documents).run()
      #expect(refused.errorText.contains("Read-only file system"), "\(refused)")
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test func theHelperKnowsWrongUsage() throws {
    #expect(try Command([helper]).run().status == 64)
    #expect(try Command([helper, "one"]).run().status == 64)
    #expect(try Command([helper, "one", "two", "-o"]).run().status == 64)
    #expect(try Command([helper, "one", "two", "-f"]).run().status == 0)
  }

  @Test(.enabled(if: TestUser.isRoot, "mount(8) needs root"))
  func mountAndFstabFindTheHelper() throws {
    let user = try TestUser.ordinary()
    let library = try MountedLibrary()
    do {
      // In a mount namespace of its own, /usr/sbin is an overlay that has the helper.
      let fstab = "\(library.folder.path)/fstab"
      let options = "as=carol@example.com,allow_other,noauto,nofail,x-systemd.automount"
      try "\(library.library) \(library.mountpoint) fuse.sheaf \(options) 0 0\n"
        .write(toFile: fstab, atomically: false, encoding: .utf8)
      let script = """
        scratch='\(library.folder.path)/overlay'; mkdir "$scratch"; mount -t tmpfs none "$scratch"
        mkdir "$scratch/upper" "$scratch/work"
        mount -t overlay -o "lowerdir=/usr/sbin,upperdir=$scratch/upper,workdir=$scratch/work" none /usr/sbin
        ln -s '\(helper)' /usr/sbin/mount.fuse.sheaf
        mountpoint='\(library.mountpoint)'
        as_user() { setpriv --reuid=\(user.user) --regid=\(user.group) --init-groups "$@"; }
        mount -t fuse.sheaf '\(library.library)' "$mountpoint" -o as=carol@example.com,allow_other
        echo one > "$mountpoint/Documents/document"
        umount "$mountpoint"
        mount --fstab '\(fstab)' "$mountpoint"
        as_user cat "$mountpoint/Documents/document"
        as_user getfattr --only-values --absolute-names -n user.sheaf.editor "$mountpoint/Documents/document"
        "$SHEAF_BIN" unmount "$mountpoint" >/dev/null
        """
      let output = try Command(
        ["unshare", "--mount", "bash", "-euo", "pipefail", "-c", script],
        environment: ["SHEAF_BIN": try SheafProgram.path()], limit: .seconds(60)
      ).run()
      #expect(output.status == 0 && output.text == "one\ncarol@example.com", "\(output)")
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  /// `suid` and `dev` are in force where somebody asked mount(8) for them, which does not tell a helper, and asks it to
  /// change a mount.
  @Test(.enabled(if: TestUser.isRoot, "mount(8) needs root"))
  func mountSetsAndChangesOptions() throws {
    let user = try TestUser.ordinary()
    let program = try SheafProgram.path()
    let library = try MountedLibrary()
    do {
      let script = """
        scratch='\(library.folder.path)/overlay'; mkdir "$scratch"; mount -t tmpfs none "$scratch"
        mkdir "$scratch/upper" "$scratch/work"
        mount -t overlay -o "lowerdir=/usr/sbin,upperdir=$scratch/upper,workdir=$scratch/work" none /usr/sbin
        ln -s '\(helper)' /usr/sbin/mount.fuse.sheaf
        library='\(library.library)'; mountpoint='\(library.mountpoint)'
        options() { findmnt --noheadings --output OPTIONS --mountpoint "$mountpoint"; }
        has() { for option; do [[ ,$(options), = *,$option,* ]] || { echo "no $option: $(options)" >&2; exit 1; }; done; }
        lacks() { for option; do [[ ,$(options), != *,$option,* ]] || { echo "$option: $(options)" >&2; exit 1; }; done; }
        sheaf() { mount -t fuse.sheaf "$library" "$mountpoint" -o "as=carol@example.com,$1"; }

        sheaf dev,suid,nodiratime,strictatime,lazytime,default_permissions
        lacks nosuid nodev; has rw default_permissions
        echo one >"$mountpoint/Documents/document"
        mount -o remount,ro,noexec "$mountpoint"
        has ro noexec; lacks nosuid nodev
        if echo two 2>/dev/null >"$mountpoint/Documents/document"; then echo "written" >&2; exit 1; fi
        if '\(program)' label "$mountpoint/Documents/document" x 2>"$scratch/refusal"; then echo "labelled" >&2; exit 1; fi
        grep -q "mounted read-only" "$scratch/refusal"
        [ "$(cat "$mountpoint/Documents/document")" = one ]
        mount -o remount,rw,exec,nosuid "$mountpoint"
        has rw nosuid; lacks noexec nodev
        echo two >"$mountpoint/Documents/document"
        if mount -o remount,noatime "$mountpoint" 2>"$scratch/refusal"; then echo "not refused" >&2; exit 1; fi
        grep -q "cannot be given noatime later" "$scratch/refusal"
        umount "$mountpoint"

        sheaf nosuid,nodev,noatime
        has nosuid nodev noatime
        mount -o remount,ro "$mountpoint"; has ro nosuid nodev noatime
        umount "$mountpoint"

        # Nobody asked for them.
        sheaf noatime; has nosuid nodev
        mount -o remount,ro,suid,dev "$mountpoint"; has ro nosuid nodev
        umount "$mountpoint"
        echo "$library $mountpoint fuse.sheaf noauto,as=carol@example.com,dev,suid 0 0" >"$scratch/fstab"
        if [ -e /etc/fstab ]; then
          mount --bind "$scratch/fstab" /etc/fstab
          mount "$mountpoint"; lacks nosuid nodev
          umount "$mountpoint"
        fi

        # What its user decides is neither set-user-ID nor a device.
        sheaf for=\(user.name); has nosuid nodev
        mount -o remount,ro,for=\(user.name) "$library" "$mountpoint" -t fuse.sheaf; has ro nosuid nodev
        umount "$mountpoint"
        chown \(user.user) "$library"
        sheaf rw; has nosuid nodev
        mount -o remount,suid,dev "$mountpoint"; has nosuid nodev
        umount "$mountpoint"
        """
      let output = try Command(
        ["unshare", "--mount", "bash", "-euo", "pipefail", "-c", script],
        environment: ["SHEAF_BIN": try SheafProgram.path()], limit: .seconds(120)
      ).run()
      #expect(output.status == 0, "\(output)")
      try library.tearDown()
    } catch {
      try? library.tearDown()
      throw error
    }
  }

  @Test func theLatencyIsMeasured() throws {
    let output = try Command(
      [Repository.path("mount-scripts/latency"), "--rate", "50", "--seconds", "2"],
      environment: ["SHEAF_BIN": try SheafProgram.path()], limit: .seconds(120)
    ).succeed()
    #expect(output.text.contains("100 saves") && output.text.contains(" 0 not delivered"), "\(output)")
  }

  /// README: a copy of the program runs where Swift is not installed.
  @Test(arguments: ["sheaf", "sheaf-sidecar"])
  func theProgramNeedsNoSwift(_ name: String) throws {
    let needed = try Command.shell("ldd \"$(dirname '\(try SheafProgram.path())')/\(name)\"").succeed().text
    #expect(needed.contains("libsqlite3") && needed.contains("libc."), "\(needed)")
    for library in ["libswift", "libFoundation", "libdispatch"] { #expect(!needed.contains(library), "\(needed)") }
  }

  @Test(arguments: ["sheaf", "sheaf-sidecar"])
  func theSystemdUnitIsSound(_ name: String) throws {
    try withTemporaryFolder { folder in
      try Command.shell(
        """
        mkdir -p home/.local/bin run; ln -s /bin/true home/.local/bin/\(name)
        HOME=$PWD/home XDG_RUNTIME_DIR=$PWD/run systemd-analyze verify --user --man=no \
          '\(Repository.path("mount-scripts/\(name).service"))'
        """, in: folder.path
      ).succeed()
    }
  }

  @Test func theUnitOfRootsMountsIsSound() throws {
    try withTemporaryFolder { folder in
      try Command.shell(
        """
        sed 's|/usr/local/bin/sheaf|/bin/true|' '\(Repository.path("mount-scripts/sheaf@.service"))' > sheaf@.service
        systemd-analyze verify --man=no "$PWD/sheaf@.service"
        systemd-analyze security --offline=true --threshold=50 --no-pager "$PWD/sheaf@.service"
        """, in: folder.path
      ).succeed()
    }
  }

  @Test(arguments: Owner.possible)
  func theUnitsCommandsMountAndUnmount(_ owner: Owner) throws {
    // What systemd would run, with its specifiers filled in.
    let user = try owner.user()
    let folder = try TemporaryFolder(for: user)
    let home = try folder.folder("home", for: user)
    try Command.shell(
      """
      export HOME=$PWD XDG_DATA_HOME=$PWD/data
      mkdir -p .local/bin; ln -s '\(try SheafProgram.path())' .local/bin/sheaf
      unit() { sed -n "s/^$1=//p" '\(Repository.path("mount-scripts/sheaf.service"))' | sed "s|%h|$HOME|g"; }
      start() { eval "$(unit ExecStartPre)"; eval "$(unit ExecStart)"; }
      start
      echo text > Sheaf/Documents/document
      # As systemd does, whatever a kill left.
      kill -9 "$(cat data/sheaf/library.sqlite-lock)"
      while ls Sheaf/Documents 2>/dev/null; do :; done
      start
      grep text Sheaf/Documents/document
      eval "$(unit ExecStop)"
      test ! -e Sheaf/Documents
      """, as: user, in: home, environment: ["SHEAF_LIBRARY": Optional<String>.none]
    ).succeed()
    try folder.remove()
  }
}
