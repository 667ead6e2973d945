import Glibc
import SheafModel

/// Whether this machine lets this user mount.
enum FuseAvailability {
  /// - Throws: ``SheafError`` that names the missing thing and how to get it.
  static func check(allowOther: Bool) throws(SheafError) {
    let descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    if descriptor >= 0 {
      close(descriptor)
    } else {
      let code = errno
      switch code {
      case ENOENT, ENODEV, ENXIO:
        throw SheafError(
          .notFound, subject: "/dev/fuse", reason: "this machine has no FUSE",
          advice: "load it as root: modprobe fuse; in a container, give it the device /dev/fuse")
      default:
        // fusermount3 opens the device as root.
        if getuid() == 0 { throw SheafError(systemError: code, subject: "/dev/fuse") }
      }
    }
    guard getuid() != 0 else { return }
    guard ChildProcess.find("fusermount3") != nil else {
      throw SheafError(
        .notFound, subject: "fusermount3", reason: "is not installed, and without it only root can mount",
        advice: "install it: apt install fuse3")
    }
    if allowOther, !allowsOthers((try? SmallFile.read("/etc/fuse.conf")) ?? []) {
      throw SheafError(
        .notPermitted, subject: "--allow-other", reason: "is for root alone on this machine",
        advice: "root allows it to everyone by a line user_allow_other in /etc/fuse.conf")
    }
  }

  /// Whether a fuse.conf has the line `user_allow_other`.
  static func allowsOthers(_ configuration: [UInt8]) -> Bool {
    configuration.readable.split(separator: "\n").contains { line in
      line.filter { $0 != " " && $0 != "\t" } == "user_allow_other"
    }
  }
}
