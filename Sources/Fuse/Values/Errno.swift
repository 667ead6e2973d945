import Glibc

/// An error number, as a reply to the kernel or from a system call.
///
/// See errno(3).
package struct Errno: Error, Hashable, Sendable, RawRepresentable {
  package let rawValue: Int32

  package init(rawValue: Int32) {
    self.rawValue = rawValue
  }

  /// The calling thread's `errno`.
  package static var current: Errno { Errno(rawValue: Glibc.errno) }

  package static let notPermitted = Errno(rawValue: EPERM)
  package static let noSuchFileOrDirectory = Errno(rawValue: ENOENT)
  package static let interrupted = Errno(rawValue: EINTR)
  package static let inputOutput = Errno(rawValue: EIO)
  package static let noSuchAddressOrDevice = Errno(rawValue: ENXIO)
  package static let argumentListTooLong = Errno(rawValue: E2BIG)
  package static let badFileDescriptor = Errno(rawValue: EBADF)
  package static let resourceTemporarilyUnavailable = Errno(rawValue: EAGAIN)
  package static let noMemory = Errno(rawValue: ENOMEM)
  package static let permissionDenied = Errno(rawValue: EACCES)
  package static let resourceBusy = Errno(rawValue: EBUSY)
  package static let fileExists = Errno(rawValue: EEXIST)
  package static let improperLink = Errno(rawValue: EXDEV)
  package static let noDevice = Errno(rawValue: ENODEV)
  package static let notDirectory = Errno(rawValue: ENOTDIR)
  package static let isDirectory = Errno(rawValue: EISDIR)
  package static let invalidArgument = Errno(rawValue: EINVAL)
  package static let tooManyOpenFiles = Errno(rawValue: EMFILE)
  package static let inappropriateIOCTLForDevice = Errno(rawValue: ENOTTY)
  package static let textFileBusy = Errno(rawValue: ETXTBSY)
  package static let fileTooLarge = Errno(rawValue: EFBIG)
  package static let noSpace = Errno(rawValue: ENOSPC)
  package static let illegalSeek = Errno(rawValue: ESPIPE)
  package static let readOnlyFileSystem = Errno(rawValue: EROFS)
  package static let deadlockWouldOccur = Errno(rawValue: EDEADLK)
  package static let noLocks = Errno(rawValue: ENOLCK)
  package static let tooManyLinks = Errno(rawValue: EMLINK)
  package static let resultTooLarge = Errno(rawValue: ERANGE)
  package static let fileNameTooLong = Errno(rawValue: ENAMETOOLONG)
  package static let noSuchFunction = Errno(rawValue: ENOSYS)
  package static let directoryNotEmpty = Errno(rawValue: ENOTEMPTY)
  package static let tooManySymbolicLinkLevels = Errno(rawValue: ELOOP)
  package static let attributeNotFound = Errno(rawValue: ENODATA)
  package static let valueTooLarge = Errno(rawValue: EOVERFLOW)
  package static let notSupported = Errno(rawValue: EOPNOTSUPP)
  package static let notConnected = Errno(rawValue: ENOTCONN)
  package static let connectionAborted = Errno(rawValue: ECONNABORTED)
  package static let staleFileHandle = Errno(rawValue: ESTALE)
  package static let noRouteToHost = Errno(rawValue: EHOSTUNREACH)
  package static let quotaExceeded = Errno(rawValue: EDQUOT)
}

extension Errno: CustomStringConvertible {
  /// The words of strerror(3).
  package var description: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let start = buffer.baseAddress, strerror_r(rawValue, start, buffer.count) == 0 else {
        return "error \(rawValue)"
      }
      return String(cString: start)
    }
  }
}
