from conformance.api import *
from conformance.probing import *
import time
def test_a():
    t=time.time()
    print(look(
      lambda: 0.1+0.2,
      lambda: ct.int8(100)+ct.int8(100),
      lambda: ct.float16(7)/2,
      lambda: ct.zeros((2,),ct.int32),
      ))
    print(time.time()-t)
    t=time.time()
    for i in range(50): binary(lambda x, y: x + y, "i8","f16","f16")
    print((time.time()-t)/50)
    binary(lambda x, y: x + y, "i8","u8",None)
    print(static(lambda: "a"+"b"))
