import CFuse
import Glibc
import Logging

/// A request of the kernel that has no answer yet. Every reply type wraps one.
///
/// Rules:
/// 1. Exactly one answer reaches libfuse for each request: a consuming method gives it, or `deinit` gives EIO and logs
///    the operation whose handler forgot it. A request without an answer would block its caller for ever.
/// 2. The device outlives the request: each holds a reference to it, given back with the answer.
struct PendingRequest: ~Copyable, @unchecked Sendable {
  // Sendable: libfuse's request may be answered from any thread (fuse_lowlevel.h), this value is its only owner, and
  // the device is Sendable itself.
  private let request: fuse_req_t
  private let device: Unmanaged<Device>
  private let operation: StaticString
  /// The number of the action that waits for an interruption; 0 if none does.
  private var interruption: UInt = 0

  init(_ request: fuse_req_t, device: Device, operation: StaticString) {
    self.request = request
    self.device = .passRetained(device)
    self.operation = operation
  }

  deinit {
    let device = device.takeRetainedValue()
    if interruption != 0 { Interruptions.forget(interruption) }
    fuse_reply_err(request, EIO)
    device.logger.error(
      "a request was dropped without an answer, its caller gets EIO",
      metadata: [
        "operation": "\(operation)", "mountpoint": "\(device.mountpoint)",
      ])
  }

  /// Answers through one of libfuse's `fuse_reply_…` functions.
  ///
  /// - Returns: whether the kernel took the answer; it does not when the connection ended meanwhile.
  consuming func answer(_ reply: (fuse_req_t) -> Int32) -> Bool {
    let request = request
    let device = device
    let interruption = interruption
    discard self
    let result = reply(request)
    if interruption != 0 { Interruptions.forget(interruption) }
    device.release()
    return result == 0
  }

  /// Answers with bytes.
  consuming func answer(_ bytes: [UInt8]) {
    _ = answer { request in
      bytes.withUnsafeBytes { fuse_reply_buf(request, $0.baseAddress, $0.count) }
    }
  }

  /// Calls `action`, on any thread, if the kernel interrupts the request, which still needs its answer.
  mutating func whenInterrupted(_ action: @escaping @Sendable () -> Void) {
    interruption = Interruptions.expect(request, action)
  }

  /// Answers that the operation failed.
  consuming func fail(_ error: Errno) {
    _ = answer { fuse_reply_err($0, error.rawValue) }
  }
}
