import CTestSystem
import Foundation
import Glibc
import Synchronization

/// Runs `body` on a thread of its own, with the umask and, if there is one, the user of `caller`, and waits for it.
///
/// Linux keeps both per thread; the thread ends with them.
func onThread<Result: Sendable>(
  as caller: Credentials, _ body: @escaping @Sendable () throws -> Result
) throws -> Result {
  let outcome = Mutex<Swift.Result<Result, any Error>?>(nil)
  let done = DispatchSemaphore(value: 0)
  let thread = Thread {
    let result = Swift.Result {
      if let mask = caller.umask { try check(sheaf_test_own_umask(mask), "unshare") }
      if let user = caller.user {
        let groups = caller.otherGroups
        try check(sheaf_test_become(user, caller.group ?? user, groups, groups.count), "setresuid \(user)")
      }
      return try body()
    }
    outcome.withLock { $0 = result }
    done.signal()
  }
  thread.stackSize = 8 << 20
  thread.start()
  done.wait()
  return try outcome.withLock { $0! }.get()
}
