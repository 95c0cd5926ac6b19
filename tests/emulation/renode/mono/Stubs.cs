// SPDX-License-Identifier: Apache-2.0
//
// Stubs of the classes of Renode that FerruleBridge.cs uses, with the signatures of Renode 1.16, or of 1.15 if
// RENODE_1_15 is defined, and a program that runs commands from its standard input on the bridge.
using System;
using System.Collections.Generic;
using System.IO;

using Antmicro.Renode.Core;
using Antmicro.Renode.Logging;
using Antmicro.Renode.Peripherals;
using Antmicro.Renode.Peripherals.Bus;
using Antmicro.Renode.Peripherals.CPU;
using Antmicro.Renode.Peripherals.Miscellaneous;
using Antmicro.Renode.Time;

namespace Antmicro.Renode.Core
{
    public interface IGPIO
    {
        void Set(bool value);
    }

    public class GPIO : IGPIO
    {
        public void Set(bool value)
        {
            IsSet = value;
        }

        public bool IsSet { get; private set; }
    }

    public interface IEmulationElement
    {
    }

    public interface IMachine
    {
        IBusController GetSystemBus(IBusPeripheral peripheral);

        IBusController SystemBus { get; }

        IClockSource ClockSource { get; }
    }
}

namespace Antmicro.Renode.Exceptions
{
    public class RecoverableException : Exception
    {
        public RecoverableException(string message) : base(message)
        {
        }
    }

    public class ConstructionException : RecoverableException
    {
        public ConstructionException(string message) : base(message)
        {
        }
    }
}

namespace Antmicro.Renode.Logging
{
    public class LogLevel
    {
        public static readonly LogLevel Info = new LogLevel();
        public static readonly LogLevel Error = new LogLevel();
    }

    public static class Logger
    {
        public static void Log(this IEmulationElement element, LogLevel level, string message)
        {
            Console.WriteLine("log " + (level == LogLevel.Error ? "error " : "info ") + message);
        }

        public static void Log(this IEmulationElement element, LogLevel level, string message, object argument)
        {
            Log(element, level, String.Format(message, argument));
        }
    }
}

namespace Antmicro.Renode.Peripherals
{
    public interface IPeripheral : IEmulationElement
    {
        void Reset();
    }
}

namespace Antmicro.Renode.Peripherals.CPU
{
    public interface ICPU : IPeripheral
    {
        void SyncTime();
    }

    public class CpuAbortException : Exception
    {
    }
}

namespace Antmicro.Renode.Peripherals.Bus
{
    public interface IBusPeripheral : IPeripheral
    {
    }

    public interface IKnownSize : IBusPeripheral
    {
        long Size { get; }
    }

    public interface IBytePeripheral : IBusPeripheral
    {
        byte ReadByte(long offset);

        void WriteByte(long offset, byte value);
    }

    public interface IWordPeripheral : IBusPeripheral
    {
        ushort ReadWord(long offset);

        void WriteWord(long offset, ushort value);
    }

    public interface IDoubleWordPeripheral : IBusPeripheral
    {
        uint ReadDoubleWord(long offset);

        void WriteDoubleWord(long offset, uint value);
    }

    public interface IBusController
    {
        bool TryGetCurrentCPU(out ICPU cpu);
#if RENODE_1_15
        byte[] ReadBytes(ulong address, int count, bool onlyMemory = false, ICPU context = null);

        void WriteBytes(byte[] bytes, ulong address, bool onlyMemory = false, ICPU context = null);

        void WriteBytes(byte[] bytes, ulong address, long count, bool onlyMemory = false, ICPU context = null);
#else
        byte[] ReadBytes(ulong address, int count, bool onlyMemory = false, IPeripheral context = null);

        void WriteBytes(byte[] bytes, ulong address, bool onlyMemory = false, IPeripheral context = null);

        void WriteBytes(byte[] bytes, ulong address, long count, bool onlyMemory = false, IPeripheral context = null);
#endif
    }
}

namespace Antmicro.Renode.Time
{
    public enum Direction
    {
        Ascending,
        Descending
    }

    public enum WorkMode
    {
        Periodic,
        OneShot
    }

    public interface IClockSource
    {
        void Add(Peripherals.Timers.LimitTimer timer);
    }
}

namespace Antmicro.Renode.Peripherals.Timers
{
    public class LimitTimer
    {
#if RENODE_1_15
        public LimitTimer(IClockSource clockSource, long frequency, IPeripheral owner, string localName, ulong limit = ulong.MaxValue, Direction direction = Direction.Descending, bool enabled = false, WorkMode workMode = WorkMode.Periodic, bool eventEnabled = false, bool autoUpdate = false, int divider = 1)
#else
        public LimitTimer(IClockSource clockSource, ulong frequency, IPeripheral owner, string localName, ulong limit = ulong.MaxValue, Direction direction = Direction.Descending, bool enabled = false, WorkMode workMode = WorkMode.Periodic, bool eventEnabled = false, bool autoUpdate = false, ulong divider = 1)
#endif
        {
            if(frequency == 0 || limit == 0 || direction != Direction.Ascending || workMode != WorkMode.OneShot || !eventEnabled)
            {
                throw new ArgumentException("this stub is for the bridge");
            }
            Limit = limit;
            Enabled = enabled;
            clockSource.Add(this);
        }

        public void ResetValue()
        {
            Value = 0;
        }

        public void Advance(ulong ticks)
        {
            if(!Enabled)
            {
                return;
            }
            Value = Math.Min(Limit, Value + ticks);
            if(Value == Limit)
            {
                Enabled = false;
                Value = 0;
                LimitReached();
            }
        }

        public ulong Limit { get; set; }

        public ulong Value { get; set; }

        public bool Enabled { get; set; }

        public event Action LimitReached;
    }
}

namespace FerruleTest
{
    public class Machine : IMachine, IBusController, IClockSource, ICPU
    {
        public IBusController GetSystemBus(IBusPeripheral peripheral)
        {
            return this;
        }

        public bool TryGetCurrentCPU(out ICPU cpu)
        {
            cpu = this;
            return true;
        }

        public void SyncTime()
        {
            Timer.Advance(Unsynchronised);
            Unsynchronised = 0;
        }

        public void Reset()
        {
        }

        public void Add(Antmicro.Renode.Peripherals.Timers.LimitTimer timer)
        {
            Timer = timer;
        }

#if RENODE_1_15
        public byte[] ReadBytes(ulong address, int count, bool onlyMemory, ICPU context)
#else
        public byte[] ReadBytes(ulong address, int count, bool onlyMemory, IPeripheral context)
#endif
        {
            var data = new byte[count];
            Array.Copy(memory, (long)Index(address, count), data, 0, count);
            return data;
        }

#if RENODE_1_15
        public void WriteBytes(byte[] bytes, ulong address, bool onlyMemory, ICPU context)
#else
        public void WriteBytes(byte[] bytes, ulong address, bool onlyMemory, IPeripheral context)
#endif
        {
            Array.Copy(bytes, 0, memory, (long)Index(address, bytes.Length), bytes.Length);
        }

#if RENODE_1_15
        public void WriteBytes(byte[] bytes, ulong address, long count, bool onlyMemory, ICPU context)
#else
        public void WriteBytes(byte[] bytes, ulong address, long count, bool onlyMemory, IPeripheral context)
#endif
        {
            throw new NotSupportedException();
        }

        public IBusController SystemBus
        {
            get
            {
                return this;
            }
        }

        public IClockSource ClockSource
        {
            get
            {
                return this;
            }
        }

        public Antmicro.Renode.Peripherals.Timers.LimitTimer Timer;
        public ulong Unsynchronised;

        private ulong Index(ulong address, int count)
        {
            if(address < Base || address + (ulong)count > Base + (ulong)memory.Length)
            {
                throw new Antmicro.Renode.Exceptions.RecoverableException("no memory at " + address);
            }
            return address - Base;
        }

        private readonly byte[] memory = new byte[1 << 20];

        private const ulong Base = 0x20000000;
    }

    public static class Program
    {
        // Commands: w WIDTH OFFSET VALUE, r WIDTH OFFSET, p ADDRESS HEX, g ADDRESS SIZE, i, s CYCLES, t CYCLES, reset, end.
        public static int Main(string[] arguments)
        {
            var machine = new Machine();
            FerruleBridge bridge;
            try
            {
                bridge = new FerruleBridge(machine, Int32.Parse(arguments[0]), Int64.Parse(arguments[1]), 25000000);
            }
            catch(Antmicro.Renode.Exceptions.ConstructionException e)
            {
                Console.WriteLine("refused " + e.Message);
                return 1;
            }
            string line;
            while((line = Console.ReadLine()) != null)
            {
                var words = line.Split(' ');
                if(words[0] == "end")
                {
                    break;
                }
                try
                {
                    Console.WriteLine(Do(machine, bridge, words));
                }
                catch(CpuAbortException)
                {
                    Console.WriteLine("abort");
                }
            }
            bridge.Dispose();
            return 0;
        }

        private static string Do(Machine machine, FerruleBridge bridge, string[] words)
        {
            switch(words[0])
            {
            case "w":
                Write(bridge, words[1], Int64.Parse(words[2]), UInt32.Parse(words[3]));
                return "ok";
            case "r":
                return Read(bridge, words[1], Int64.Parse(words[2])).ToString();
            case "p":
                machine.WriteBytes(FromHex(words[2]), UInt64.Parse(words[1]), false, null);
                return "ok";
            case "g":
                return BitConverter.ToString(machine.ReadBytes(UInt64.Parse(words[1]), Int32.Parse(words[2]), false, null)).Replace("-", "");
            case "i":
                return bridge.IRQ.IsSet ? "1" : "0";
            case "s": // cycles that the core has executed but not yet reported
                machine.Unsynchronised = UInt64.Parse(words[1]);
                return "ok";
            case "t":
                machine.Timer.Advance(UInt64.Parse(words[1]));
                return "ok";
            case "reset":
                bridge.Reset();
                return "ok";
            }
            throw new ArgumentException(words[0]);
        }

        private static void Write(FerruleBridge bridge, string width, long offset, uint value)
        {
            if(width == "4")
            {
                bridge.WriteDoubleWord(offset, value);
            }
            else if(width == "2")
            {
                bridge.WriteWord(offset, (ushort)value);
            }
            else
            {
                bridge.WriteByte(offset, (byte)value);
            }
        }

        private static uint Read(FerruleBridge bridge, string width, long offset)
        {
            return width == "4" ? bridge.ReadDoubleWord(offset) : width == "2" ? bridge.ReadWord(offset) : bridge.ReadByte(offset);
        }

        private static byte[] FromHex(string text)
        {
            var data = new byte[text.Length / 2];
            for(var i = 0; i < data.Length; i++)
            {
                data[i] = Convert.ToByte(text.Substring(2 * i, 2), 16);
            }
            return data;
        }
    }
}
