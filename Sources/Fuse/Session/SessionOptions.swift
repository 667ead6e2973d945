/// The options of a session and of its mount.
package struct SessionOptions: Hashable, Sendable {
  /// The source that `/proc/mounts` shows (`fsname=`).
  package var source: String
  /// The part of the type after `fuse.` (`subtype=`).
  package var subtype: String
  /// Others than the mounting user may use the mount (`allow_other`).
  package var allowOther = false
  /// The kernel checks modes and ownership itself (`default_permissions`). Otherwise the file system does, in every
  /// operation. Everybody in the mount can then pass, without a request, through a directory whose names the kernel
  /// remembers.
  package var defaultPermissions = true
  package var readOnly = false
  /// Set-id bits have an effect on execve(2). libfuse's default is `nosuid`.
  package var allowSetID = false
  /// Device nodes are devices. libfuse's default is `nodev`.
  package var allowDevices = false
  /// Further options as after `-o`, such as `noatime`; libfuse refuses what it does not know.
  package var extra: [String] = []
  /// libfuse logs every request.
  package var debug = false
  /// The mount's read-ahead in KiB, set once it answers, where the process may (root); nil leaves the kernel's 128.
  package var readAheadKilobytes: Int? = 1024

  package init(source: String, subtype: String = "sheaf") {
    self.source = source
    self.subtype = subtype
  }
}

extension SessionOptions {
  /// The arguments of `fuse_session_new()`.
  var arguments: [String] {
    var options = ["fsname=" + Self.escaped(source), "subtype=" + Self.escaped(subtype)]
    if allowOther { options.append("allow_other") }
    if defaultPermissions { options.append("default_permissions") }
    if readOnly { options.append("ro") }
    if allowSetID { options.append("suid") }
    if allowDevices { options.append("dev") }
    if debug { options.append("debug") }
    return [subtype] + (options + extra).flatMap { ["-o", $0] }
  }

  /// Escapes commas, which separate options, and backslashes (fuse_opt.h).
  private static func escaped(_ value: String) -> String {
    value.reduce(into: "") { text, character in
      if character == "," || character == "\\" { text.append("\\") }
      text.append(character)
    }
  }
}

/// A mount that could not be made or ended.
package struct MountError: Error, Hashable, Sendable, CustomStringConvertible {
  package let mountpoint: String
  /// The words of the system, libfuse or fusermount3.
  package let reason: String

  package init(mountpoint: String, reason: String) {
    self.mountpoint = mountpoint
    self.reason = reason
  }

  package var description: String { "\(mountpoint): \(reason)" }
}
