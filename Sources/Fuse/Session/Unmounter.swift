import CFuse
import Glibc

/// Ends a mount, and no other one that may have taken its place.
package enum Unmounter {
  /// Takes away, lazily, the mount at an absolute path without symbolic links.
  package static func detach(at path: String) throws(MountError) {
    if let mount = MountTable.topmost(at: path) { try unmount(mount, lazily: true) }
  }

  /// Unmounts, unless it is gone already.
  static func unmount(_ mount: MountTable.Entry, lazily: Bool) throws(MountError) {
    // By its number: a folder above it may have another name by now.
    guard let place = current(mount)?.path else { return }
    // umount2 and fusermount3 take a path, and unmount the topmost mount there.
    guard MountTable.topmost(at: place)?.id == mount.id else {
      throw MountError(mountpoint: place, reason: "something else is mounted over it")
    }
    do throws(Errno) {
      try call(mount, at: place, flags: lazily ? Int32(MNT_DETACH) : 0)
    } catch .notPermitted {
      try callFusermount(place, lazily: lazily)
    } catch {
      // Somebody else may have been quicker.
      guard current(mount) != nil else { return }
      throw MountError(mountpoint: place, reason: error.description)
    }
  }

  /// Cuts a mount's connection: whoever waits for an answer gets an error. The mount stays, dead.
  ///
  /// The kernel does so by itself when the last process with the device open has ended. One that was killed may not end
  /// before: its threads wait, without regard to signals, for locks of those who wait for their answers.
  ///
  /// Source: Documentation/filesystems/fuse.rst of the kernel, "Interrupting filesystem operations"; umount2(2),
  /// `MNT_FORCE`, for root where fusectl is not mounted.
  ///
  /// - Throws: where neither is possible.
  package static func abort(_ mount: MountTable.Entry) throws(MountError) {
    guard let number = mount.device.split(separator: ":").last else { return }
    do throws(Errno) {
      try writeFile("/sys/fs/fuse/connections/\(number)/abort", "1")
    } catch {
      do throws(Errno) {
        // The mount is not to go, so it is in use meanwhile.
        let root = try Place(mount.path.split(separator: "/").map(String.init))
        defer { withExtendedLifetime(root) {} }
        try call(mount, at: mount.path, flags: Int32(MNT_FORCE))
      } catch .resourceBusy {
        // It stays, and is cut all the same.
      } catch {
        throw MountError(mountpoint: mount.path, reason: error.description)
      }
    }
  }

  /// The mount as the table has it now; nil where it is gone.
  private static func current(_ mount: MountTable.Entry) -> MountTable.Entry? {
    (try? MountTable.read())?.entries.first { $0.id == mount.id && $0.device == mount.device }
  }

  /// Calls umount2(2), following no symbolic link on the way: the owner of a folder above the mount could put one
  /// there.
  private static func call(_ mount: MountTable.Entry, at path: String, flags: Int32) throws(Errno) {
    var names = path.split(separator: "/").map(String.init)
    guard let name = names.popLast() else { throw .resourceBusy }
    let parent = try Place(names)
    var (major, minor): (UInt32, UInt32) = (0, 0)
    guard cfuse_device(parent.descriptor, name, &major, &minor) == 0 else { throw .current }
    // Nobody renames a mount point, so from here on the name leads to this mount or to none.
    guard mount.device == "\(major):\(minor)" else { throw .resourceBusy }
    let place = "/proc/self/fd/\(parent.descriptor)/\(name)"
    guard umount2(place, Int32(UMOUNT_NOFOLLOW) | flags) == 0 else { throw .current }
  }

  /// Asks the set-user-id program fusermount3(1) to unmount.
  private static func callFusermount(_ mountpoint: String, lazily: Bool) throws(MountError) {
    let (result, messages) = LibfuseLog.collectWithStandardError {
      let arguments = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", mountpoint]
      var pointers = arguments.map { strdup($0) } + [nil]
      defer { pointers.forEach { free($0) } }
      var process = pid_t()
      let spawned = posix_spawnp(&process, "fusermount3", nil, nil, &pointers, environ)
      guard spawned == 0 else { return spawned }
      var status: Int32 = 0
      while waitpid(process, &status, 0) < 0 {
        guard errno == EINTR else { return errno }
      }
      return status
    }
    guard result == 0 else {
      throw MountError(
        mountpoint: mountpoint, reason: messages.isEmpty ? "fusermount3 could not unmount it" : messages)
    }
  }
}
