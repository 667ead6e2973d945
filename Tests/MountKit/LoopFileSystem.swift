import ConformanceKit
import CTestSystem
import Glibc

/// A small ext4 of its own, in a sparse file behind a loop device; needs root.
public struct LoopFileSystem: Sendable {
  public let image: String
  public let mountpoint: String
  private let options: String

  /// Makes and mounts it below `folder`.
  public init(
    below folder: TemporaryFolder, mebibytes: Int, format: [String] = [], options: String = "defaults"
  ) throws {
    image = "\(folder.path)/disk.ext4"
    mountpoint = try folder.folder("disk")
    self.options = options
    try Command(["truncate", "--size=\(mebibytes)M", image]).succeed()
    try Command(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0"] + format + [image]).succeed()
    try mount()
  }

  public func mount() throws { try Command(["mount", "-o", "loop,\(options)", image, mountpoint]).succeed() }

  public func unmount() throws { try Command(["umount", mountpoint]).succeed() }

  /// Detaches it for good, even if processes still use it.
  public func detach() { _ = try? Command(["umount", "--lazy", mountpoint]).run() }

  /// Cuts the power: everything that is not on the disk by now, the journal included, is lost.
  ///
  /// Everything fails with EIO until it is unmounted and mounted again.
  public func cutPower() throws {
    let folder = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw Errno(errno, "open \(mountpoint)") }
    defer { close(folder) }
    guard sheaf_test_power_cut(folder) == 0 else { throw Errno(errno, "EXT4_IOC_SHUTDOWN") }
  }
}
