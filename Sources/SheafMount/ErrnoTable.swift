import Fuse
import SheafModel

extension Errno {
  /// The one table from ``SheafError/Kind`` to errno.
  init(_ kind: SheafError.Kind) {
    self =
      switch kind {
      case .notFound: .noSuchFileOrDirectory
      case .exists: .fileExists
      case .notDirectory: .notDirectory
      case .isDirectory: .isDirectory
      case .notEmpty: .directoryNotEmpty
      case .accessDenied: .permissionDenied
      case .notPermitted: .notPermitted
      case .invalid: .invalidArgument
      case .nameTooLong: .fileNameTooLong
      case .tooLarge: .fileTooLarge
      case .attributeTooLarge: .argumentListTooLong
      case .noSpace: .noSpace
      case .tooManyLinks: .tooManyLinks
      case .gone: .noSuchFileOrDirectory
      case .inputOutput, .corrupt, .newerFormat, .unavailable: .inputOutput
      case .crossDevice: .improperLink
      case .notSupported: .notSupported
      case .noAttribute: .attributeNotFound
      case .noSuchAddress: .noSuchAddressOrDevice
      case .busy: .resourceBusy
      case .readOnly: .readOnlyFileSystem
      case .badDescriptor: .badFileDescriptor
      case .unreachable: .noRouteToHost
      }
  }
}

/// Runs `body`, and turns its errors into errnos.
func translated<Value>(_ body: () throws -> Value) throws(Errno) -> Value {
  do {
    return try body()
  } catch let error as SheafError {
    throw Errno(error.kind)
  } catch let error as Errno {
    throw error
  } catch {
    throw .inputOutput
  }
}

/// Runs `body` for a node to which a path or a handle already led. For a node that is gone it answers ESTALE, so that
/// the kernel looks the path up anew; ENOENT would fail an open(2) with `O_CREAT` (fs/namei.c, `do_filp_open`;
/// include/linux/namei.h, `retry_estale`).
func translatedForNode<Value>(_ body: () throws -> Value) throws(Errno) -> Value {
  do throws(Errno) {
    return try translated(body)
  } catch {
    throw error == .noSuchFileOrDirectory ? .staleFileHandle : error
  }
}
